"""The store that a command works on."""

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
"""Seconds that someone at a terminal waits for a store that is away."""


@contextmanager
def open_store(
    store: str | None, *, prepare: bool = False, patience: float = PATIENCE
) -> Iterator[Fairlane]:
    """The application on the store that flags and settings name.

    `prepare`: make the store, or bring it up to date, if need be. Others only look, and leave
    nothing behind where there is none.
    """
    from fairlane.client.app import Fairlane  # noqa: PLC0415 (engines take their time)

    settings = resolve({"store": store})
    url = settings.store_url
    app = Fairlane(
        url,
        migrate=prepare,
        patience=patience,
        encryption_keys=settings.keys,
        token=settings.server_token,
    )
    app.backend  # noqa: B018 (open_store, not connected: a URL that cannot be is told first)
    try:
        if not prepare:
            _check_present(url)
        yield app
    finally:
        app.close()


def _check_present(url: str) -> None:
    """A file that is not there would be made by looking at it."""
    if not url.lower().startswith("sqlite:"):
        return
    path = unquote(urlsplit(url).path).removeprefix("/")
    if path and not Path(path).exists():
        raise CommandFailed(
            f"There is no store at {scrubbed(path)}: make one with `fairlane migrate`, "
            "or name another with --store."
        )
