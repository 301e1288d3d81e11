"""The URL of the database: for both drivers, and as a name for messages."""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from fairlane.core.errors import InvalidStoreURL
from fairlane.core.text import shown

# Options that only libpq knows. asyncpg would send them to the server, which refuses them.
_LIBPQ_ONLY = {
    "channel_binding",
    "client_encoding",
    "connect_timeout",
    "fallback_application_name",
    "gssencmode",
    "load_balance_hosts",
    "tcp_user_timeout",
}

_OURS = {"pgbouncer"}
_ANSWERS = {"true": True, "false": False}


class Address:
    """A URL, and a name for the database that contains no secret."""

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            places = _places(parts.netloc)
        except ValueError:
            # The error may quote a part of the password.
            raise InvalidStoreURL(
                "The host or the port in the PostgreSQL URL cannot be read. A URL looks like "
                "postgresql://user:password@host:5432/database. (In a password, write / as %2F.)"
            ) from None
        options = parse_qsl(parts.query, keep_blank_values=True)
        given = dict(options)
        place = places or given.get("host") or "this machine"
        database = unquote(parts.path.removeprefix("/")) or given.get("dbname") or "its default"
        self.name = f"PostgreSQL database {database} at {place}"
        self.pooled = _answer(given.get("pgbouncer"))
        """Whether a pooler in transaction mode is in between; None: to be detected."""
        if "," in place and "target_session_attrs" not in given:
            # Several servers are a primary and its standbys: connect to the primary.
            options.append(("target_session_attrs", "read-write"))
        options = [(name, value) for name, value in options if name not in _OURS]
        bare = f"{parts.scheme}://{parts.netloc}{parts.path}"
        self.url = _with(bare, options)
        kept = [
            (name, value)
            for name, value in options
            if name not in _LIBPQ_ONLY and not name.startswith("keepalives")
        ]
        self.url_for_asyncpg = _with(bare, kept)


def _with(url: str, options: list[tuple[str, str]]) -> str:
    return f"{url}?{urlencode(options)}" if options else url


def _places(netloc: str) -> str:
    """Return hosts and ports, without user and password. Raises ValueError for an invalid port."""
    hosts = netloc.rpartition("@")[2]
    for host in hosts.split(","):
        urlsplit(f"//{host}").port  # noqa: B018 (reading it checks it)
    return hosts


def _answer(given: str | None) -> bool | None:
    if given is None:
        return None
    if given not in _ANSWERS:
        raise InvalidStoreURL(
            f"The option pgbouncer of a PostgreSQL URL is true or false. Got {shown(given)}."
        )
    return _ANSWERS[given]
