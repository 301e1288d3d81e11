"""Parse the URL of a Redis store.

    redis://[user:password@]host[:6379][/db]
    unix://[user:password@]/path/to.sock
    redis+sentinel://[user:password@]host[:26379][,host[:26379]…]/service[/db]

`rediss://` and `rediss+sentinel://` are the same over TLS. Options follow a question mark; their
names are those of redis-py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn
from urllib.parse import parse_qsl, unquote

from fairlane.core.errors import InvalidStoreURL, NotSupported
from fairlane.engines.redis.sentinels import Endpoint, Sentinels

SERVER_PORT = 6379
SENTINEL_PORT = 26379

CLUSTER = (
    "Fairlane does not support Redis Cluster: use a server that is not in cluster mode, or "
    "Sentinels (redis+sentinel://) for servers that fail over."
)

_CONNECT_SECONDS = 5.0
# Shorter, because there are other Sentinels to ask.
_SENTINEL_CONNECT_SECONDS = 1.0
# Every script is bounded and takes milliseconds: a server that takes longer than this is down.
_REPLY_SECONDS = 10.0


class Address:
    """A parsed URL. `name` is for messages and contains no secret."""

    def __init__(self, url: str) -> None:
        scheme, separator, rest = url.partition("://")
        if not separator:
            _refuse("begins with redis:// or another known scheme.")
        scheme = scheme.lower()
        if scheme.endswith("+cluster"):
            raise NotSupported(CLUSTER)
        rest, _, query = rest.partition("?")
        place, _, path = rest.partition("/")
        login, _, hosts = place.rpartition("@")

        options = {**_login(login), **_options(query)}
        self.tls = scheme.startswith("rediss")
        self.reply_seconds: float = options.pop("socket_timeout", _REPLY_SECONDS)
        shared = _pop_options(options, "ssl_")
        shared = _tls(shared) if self.tls else _refuse_options(shared, "rediss")
        if "socket_connect_timeout" in options:
            shared["socket_connect_timeout"] = options.pop("socket_connect_timeout")
        to_sentinels = _pop_options(options, "sentinel_")

        self.path: str | None = None
        self.sentinels: Sentinels | None = None
        if scheme.endswith("+sentinel"):
            service, _, path = unquote(path).partition("/")
            self.sentinels = _sentinels(hosts, service)
            self.name = f"The Redis service {service}"
        else:
            _refuse_options(to_sentinels, "redis+sentinel")
            if scheme == "unix":
                self.path = options["path"] = _socket(unquote(path))
                self.name = f"The Redis server at {self.path}"
            else:
                options["host"], options["port"] = server = _endpoint(hosts, SERVER_PORT)
                self.name = f"The Redis server at {server}"
        if self.path is None:
            options.setdefault("db", _database(path))

        self.options: Mapping[str, Any] = {
            "socket_connect_timeout": _CONNECT_SECONDS,
            **options,
            **shared,
        }
        self._sentinel_options: Mapping[str, Any] = {
            "socket_connect_timeout": _SENTINEL_CONNECT_SECONDS,
            **{name.removeprefix("sentinel_"): value for name, value in to_sentinels.items()},
            **shared,
        }

    def master_options(self, found: Endpoint) -> Mapping[str, Any]:
        """Return the options of a connection to the server that Sentinels name the master."""
        return {**self.options, "host": found.host, "port": found.port}

    def sentinel_options(self, asked: Endpoint) -> Mapping[str, Any]:
        """Return the options of a connection to one of the Sentinels."""
        return {**self._sentinel_options, "host": asked.host, "port": asked.port}


def _login(text: str) -> dict[str, Any]:
    user, _, password = text.partition(":")
    given = {"username": unquote(user), "password": unquote(password)}
    return {name: value for name, value in given.items() if value}


def _sentinels(hosts: str, service: str) -> Sentinels:
    if not service:
        _refuse("names the service that the Sentinels watch: …/mymaster.")
    several = hosts.split(",")
    if len(several) > 1 and "" in several:
        _refuse("has a comma between two Sentinels, and nowhere else.")
    return Sentinels([_endpoint(host, SENTINEL_PORT) for host in several], service)


def _endpoint(text: str, port: int) -> Endpoint:
    """Parse host, host:port, [ipv6] or [ipv6]:port."""
    if "," in text:
        _refuse(f"names one server; use redis+sentinel:// for several Sentinels. {CLUSTER}")
    if text.startswith("["):
        host, closed, tail = text[1:].partition("]")
        if not (host and closed) or tail[:1] not in {"", ":"}:
            _refuse("has an IPv6 address in brackets: redis://[::1]:6379/0.")
        digits = tail[1:]
    else:
        host, _, digits = text.partition(":")
    if digits and not (digits.isascii() and digits.isdigit() and 0 < int(digits) < 65536):
        _refuse("has a port that is a number from 1 to 65535.")
    return Endpoint(unquote(host) or "localhost", int(digits or port))


def _socket(path: str) -> str:
    if not path:
        _refuse("of a socket contains its path: unix:///run/redis.sock.")
    return f"/{path}"


def _database(path: str) -> int:
    try:
        return _number(path.strip("/") or "0")
    except ValueError:
        _refuse("ends with the number of a database.")


def _options(query: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, text in parse_qsl(query, keep_blank_values=True):
        read = _READERS.get(name)
        if read is None:
            known = ", ".join(sorted(_READERS))
            _refuse(f"has no option {ascii(name)[:80]}. Known options are {known}.")
        try:
            found[name] = read(text)
        except ValueError:
            _refuse(f"has an invalid value for {name}.")
    return found


def _pop_options(options: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Remove and return the options whose names start with the prefix."""
    return {name: options.pop(name) for name in list(options) if name.startswith(prefix)}


def _refuse_options(options: dict[str, Any], scheme: str) -> dict[str, Any]:
    """Raise if there are options that need another scheme; return none otherwise."""
    if options:
        _refuse(f"with the option {min(options)} begins with {scheme}.")
    return {}


def _tls(options: dict[str, Any]) -> dict[str, Any]:
    """Check the server's certificate unless the URL says otherwise, unlike redis-py's default."""
    required = options.get("ssl_cert_reqs", "required")
    checked = required != "none" and options.get("ssl_check_hostname", True)
    return {**options, "ssl_cert_reqs": required, "ssl_check_hostname": checked}


def _number(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError
    return number


def _seconds(text: str) -> float:
    number = float(text)
    if not 0 < number < 1e6:
        raise ValueError
    return number


def _flag(text: str) -> bool:
    return _one_of("false", "true")(text.lower()) == "true"


def _one_of(*known: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in known:
            raise ValueError
        return text

    return read


_READERS: Mapping[str, Callable[[str], Any]] = {
    "client_name": str,
    "db": _number,
    "password": str,
    "sentinel_password": str,
    "sentinel_username": str,
    "socket_connect_timeout": _seconds,
    "socket_timeout": _seconds,
    "ssl_ca_certs": str,
    "ssl_cert_reqs": _one_of("none", "optional", "required"),
    "ssl_certfile": str,
    "ssl_check_hostname": _flag,
    "ssl_keyfile": str,
    "username": str,
}


def _refuse(why: str) -> NoReturn:
    raise InvalidStoreURL(f"A Redis URL {why}")
