"""Open the store that a command works on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from fairlane.cli.errors import CommandFailed, scrubbed
from fairlane.cli.settings import resolve

if TYPE_CHECKING:
    from fairlane.client.app import Fairlane

PATIENCE = 5.0
"""How many seconds a command waits for a store that is unavailable."""


@contextmanager
def open_store(
    store: str | None, *, prepare: bool = False, patience: float = PATIENCE
) -> Iterator[Fairlane]:
    """Open the store that flags and settings name, as an application without tasks.

    `prepare`: create or migrate its schema if needed. Without it a command only reads, and creates
    nothing if there is no store.
    """
    from fairlane.client.app import Fairlane  # noqa: PLC0415 (importing engines takes long)

    settings = resolve({"store": store})
    url = settings.store_url
    app = Fairlane(
        url,
        migrate=prepare,
        patience=patience,
        encryption_keys=settings.keys,
        token=settings.server_token,
        blobs=settings.blobs,
    )
    app.backend  # noqa: B018 (raises InvalidStoreURL before anything else; does not connect)
    try:
        if not prepare:
            _check_present(url)
        yield app
    finally:
        app.close()


def _check_present(url: str) -> None:
    """Raise CommandFailed if an SQLite file is missing, because opening it would create it."""
    if not url.lower().startswith("sqlite:"):
        return
    path = unquote(urlsplit(url).path).removeprefix("/")
    if path and not Path(path).exists():
        raise CommandFailed(
            f"There is no store at {scrubbed(path)}: make one with `fairlane migrate`, "
            "or name another with --store."
        )
