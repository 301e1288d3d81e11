"""Where the database is, as its two drivers and as messages have it."""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from fairlane.core.errors import InvalidStoreURL

# What only libpq knows. asyncpg would pass it on to the server, which would refuse it.
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
    """A URL, and a name for what it leads to that gives no secret away."""

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            places = _places(parts.netloc)
        except ValueError:
            # What the error quotes may be a part of the password.
            raise InvalidStoreURL(
                "A PostgreSQL URL looks like postgresql://user:password@host:5432/database: there "
                "is no reading the host or the port of the one given. (In a password, / is %2F.)"
            ) from None
        options = parse_qsl(parts.query, keep_blank_values=True)
        told = dict(options)
        place = places or told.get("host") or "this machine"
        database = unquote(parts.path.removeprefix("/")) or told.get("dbname") or "its default"
        self.name = f"PostgreSQL database {database} at {place}"
        self.pooled = _answer(told.get("pgbouncer"))
        """Whether a pooler in transaction mode stands in between; None to find out."""
        if "," in place and "target_session_attrs" not in told:
            # Several servers are one that can be written to and those that may take its place.
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
    """Hosts and ports, without user and password. Raises ValueError for a port that is none."""
    hosts = netloc.rpartition("@")[2]
    for host in hosts.split(","):
        urlsplit(f"//{host}").port  # noqa: B018 (looking is what checks it)
    return hosts


def _answer(given: str | None) -> bool | None:
    if given is None:
        return None
    if given not in _ANSWERS:
        raise InvalidStoreURL("The option pgbouncer of a PostgreSQL URL is true or false.")
    return _ANSWERS[given]
