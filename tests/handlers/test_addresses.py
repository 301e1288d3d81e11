"""Which addresses a webhook may reach."""

import socket
from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from fairlane.handlers.addresses import is_public, resolve
from fairlane.runtime.outcomes import Fail

NOT_PUBLIC = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.2.1",
    "192.168.0.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::808:808",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:0:7f00:1::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fdff::1",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "fd00:ec2::254",
]

PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2606:4700:4700::1111",
    "2001:4860:4860::8888",
    "2a00:1450:4001::200e",
]


@pytest.mark.parametrize("address", NOT_PUBLIC)
async def test_what_is_not_public_is_refused(address: str) -> None:
    assert not is_public(ip_address(address))
    with pytest.raises(Fail, match="public Internet"):
        await resolve(address, 443, [])


@pytest.mark.parametrize("address", PUBLIC)
async def test_what_is_public_is_not(address: str) -> None:
    assert await resolve(address, 443, []) == [ip_address(address)]


@pytest.mark.parametrize(
    "host",
    [
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "127.1",
        "127.0.1",
        "0",
        "0x",
        "017700000001",
        "134744072",
        "127.0.0.1.",
        "1.2.3.4.5",
        "256.256.256.256",
        "127.0.0.0x1",
    ],
)
async def test_addresses_in_disguise_are_refused(host: str) -> None:
    with pytest.raises(Fail, match="no proper way"):
        await resolve(host, 443, [])


@pytest.mark.parametrize(
    "host", ["", ".", "a..b", "a b", "a/b", "a" * 64, "a." * 127 + "com", "a\x00b", "ö.de", "[::1]"]
)
async def test_what_is_no_name_is_refused(host: str) -> None:
    with pytest.raises(Fail, match="host name"):
        await resolve(host, 443, [])


async def test_localhost_is_refused() -> None:
    with pytest.raises(Fail, match="public Internet"):
        await resolve("localhost", 443, [])


async def test_networks_can_be_allowed() -> None:
    allowed = [ip_network("10.1.0.0/16"), ip_network("fd00::/8")]
    assert await resolve("10.1.2.3", 443, allowed) == [ip_address("10.1.2.3")]
    assert await resolve("fd00::1", 443, allowed) == [ip_address("fd00::1")]
    with pytest.raises(Fail):
        await resolve("10.2.0.1", 443, allowed)


@pytest.mark.parametrize("answers", [["8.8.8.8", "127.0.0.1"], ["::1", "8.8.8.8"], ["10.0.0.1"]])
async def test_one_bad_address_spoils_the_name(
    monkeypatch: pytest.MonkeyPatch, answers: list[str]
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", answering(answers))
    with pytest.raises(Fail, match="public Internet"):
        await resolve("mixed.example", 443, [])


async def test_the_message_does_not_tell_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", answering(["10.9.8.7"]))
    with pytest.raises(Fail) as caught:
        await resolve("internal.example", 443, [])
    assert "10.9.8.7" not in str(caught.value)


async def test_all_good_addresses_are_given_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", answering(["8.8.4.4", "2606:4700::1"]))
    found = await resolve("good.example", 443, [])
    assert found == [ip_address("8.8.4.4"), ip_address("2606:4700::1")]


def answering(addresses: list[str]) -> Any:
    """What a resolver says that knows these addresses."""

    def getaddrinfo(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        return [
            (
                socket.AF_INET6 if ":" in address else socket.AF_INET,
                socket.SOCK_STREAM,
                6,
                "",
                (address, port),
            )
            for address in addresses
        ]

    return getaddrinfo
