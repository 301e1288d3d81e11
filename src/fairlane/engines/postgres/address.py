"""Where the database is, as its two drivers and as messages have it."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from fairlane.core.errors import InvalidStoreURL

# What only libpq knows. asyncpg would pass it on to the server, which would refuse it.
_LIBPQ_ONLY = {
    "channel_binding",
    "client_encoding",
    "connect_timeout",
    "fallback_application_name",
    "gssencmode",
    "tcp_user_timeout",
}


class Address:
    """A URL, and a name for what it leads to that gives no secret away."""

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise InvalidStoreURL(
                "A PostgreSQL URL looks like postgresql://user:password@host:5432/database: "
                f"{error} in the one given."
            ) from None
        options = parse_qsl(parts.query)
        place = host or dict(options).get("host") or "this machine"
        database = parts.path.removeprefix("/") or dict(options).get("dbname") or "its default"
        self.url = url
        self.name = f"PostgreSQL database {database} at {place}{f':{port}' if port else ''}"
        kept = [
            (name, value)
            for name, value in options
            if name not in _LIBPQ_ONLY and not name.startswith("keepalives")
        ]
        self.url_for_asyncpg = urlunsplit(parts._replace(query=urlencode(kept)))
