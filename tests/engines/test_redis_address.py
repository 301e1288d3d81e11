"""Redis URLs: what they mean, and what is wrong with them."""

from __future__ import annotations

import pytest

from fairlane import engines
from fairlane.core.errors import InvalidStoreURL
from fairlane.engines.redis.address import Address
from fairlane.engines.redis.sentinels import Endpoint


def test_a_server() -> None:
    address = Address("redis://app:p%40ss@db.example:6380/3?client_name=me")
    assert address.options["host"] == "db.example"
    assert address.options["port"] == 6380
    assert address.options["db"] == 3
    assert address.options["username"] == "app"
    assert address.options["password"] == "p@ss"
    assert address.options["client_name"] == "me"
    assert address.name == "The Redis server at db.example:6380"
    assert not address.tls
    assert address.sentinels is None


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("redis://", "localhost", 6379),
        ("redis://host", "host", 6379),
        ("REDIS://host/", "host", 6379),
        ("redis://:7000/1", "localhost", 7000),
        ("rediss://[::1]:7000", "::1", 7000),
        ("redis://[fe80::1]", "fe80::1", 6379),
        ("redis://user:a%2Fb%40c%3Ad@host:7000/1", "host", 7000),
    ],
)
def test_hosts_and_ports(url: str, host: str, port: int) -> None:
    options = Address(url).options
    assert (options["host"], options["port"]) == (host, port)


def test_a_socket() -> None:
    address = Address("unix://app:pw@/run/my%20redis.sock?db=2")
    assert address.options["path"] == address.path == "/run/my redis.sock"
    assert address.options["db"] == 2
    assert address.options["username"] == "app"


def test_sentinels() -> None:
    address = Address(
        "redis+sentinel://app:pw@one,two:7000,[::1]:7001/mymaster/4"
        "?sentinel_username=s&sentinel_password=t&socket_timeout=2"
    )
    assert address.sentinels is not None
    assert address.sentinels.service == "mymaster"
    flow = address.sentinels.master()
    assert next(flow) == Endpoint("one", 26379)
    assert flow.send(None) == Endpoint("two", 7000)
    assert flow.send(None) == Endpoint("::1", 7001)
    flow.close()
    master = address.master_options(Endpoint("three", 1))
    assert (master["host"], master["port"], master["db"]) == ("three", 1, 4)
    assert (master["username"], master["password"]) == ("app", "pw")
    sentinel = address.sentinel_options(Endpoint("one", 26379))
    assert (sentinel["host"], sentinel["port"]) == ("one", 26379)
    assert (sentinel["username"], sentinel["password"]) == ("s", "t")
    assert "db" not in sentinel
    assert address.reply_seconds == 2.0


def test_tls_is_strict_unless_told_otherwise() -> None:
    for scheme, place in (("rediss", "host"), ("rediss+sentinel", "host/mymaster")):
        options = Address(f"{scheme}://{place}").options
        assert options["ssl_cert_reqs"] == "required"
        assert options["ssl_check_hostname"] is True
    lax = Address("rediss://host?ssl_cert_reqs=none&ssl_check_hostname=true").options
    assert lax["ssl_cert_reqs"] == "none"
    assert lax["ssl_check_hostname"] is False  # nobody could: there is nothing to check


@pytest.mark.parametrize(
    "url",
    [
        "redis:host",
        "redis://u:s3cret@host:port/0",
        "redis://u:s3cret@host:99999999/0",
        "redis://u:s3cret@host:0",
        "redis://u:s3cret@host/production",
        "redis://u:s3cret@host/-1",
        "redis://u:s3cret@host?db=x",
        "redis://u:s3cret@host?decode_responses=1",
        "redis://u:s3cret@host?socket_timeout=never",
        "redis://u:s3cret@host?socket_timeout=nan",
        "redis://u:s3cret@host?ssl_ca_certs=ca.pem",
        "rediss://u:s3cret@host?ssl_cert_reqs=maybe",
        "rediss://u:s3cret@host?ssl_check_hostname=maybe",
        "redis://u:s3cret@host?sentinel_password=s3cret",
        "redis://u:s3cret@one,two/0",
        "redis+sentinel://u:s3cret@one,two",
        "redis+sentinel://u:s3cret@one,two/mymaster/first",
        "redis+sentinel://u:s3cret@one,,two/mymaster",
        "redis+sentinels://u:s3cret@one/mymaster",
        "unix://u:s3cret@",
        "redis://u:s3cret@[",
        "redis://u:s3cret@[]:6379",
        "redis://u:s3cret@[::1]6379",
    ],
)
def test_what_makes_no_sense(url: str) -> None:
    with pytest.raises(InvalidStoreURL) as refused:
        engines.open(url)
    assert "s3cret" not in str(refused.value)
