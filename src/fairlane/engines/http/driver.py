"""A driver for a server: one side for asyncio, one for ordinary code.

A request is repeated here only if its connection was closed while idle. Operations are safe to
repeat, and `persist` repeats them.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from fairlane.backoff import persist, persist_async
from fairlane.core.backend import Durability
from fairlane.core.errors import InvalidStoreURL, NotSupported
from fairlane.core.flow import Op
from fairlane.core.text import is_plain
from fairlane.engines.http.address import address_of
from fairlane.engines.http.calls import Head
from fairlane.engines.http.driver_async import AsyncSide
from fairlane.engines.http.driver_sync import SyncSide

T = TypeVar("T")

_ALONE = (
    "There are no transactions over HTTP: use the store's own URL, or submit with an idempotency "
    "key, and write so that a repetition does no harm."
)
GAP_SECONDS = 0.05


class HttpWakeup:
    """No hints: over HTTP, a claim waits on the server until there is a task."""

    async def wait(self, seconds: float) -> bool:
        await asyncio.sleep(min(seconds, GAP_SECONDS))
        return True

    async def aclose(self) -> None:
        pass


class HttpDriver:
    """Performs operations on one server."""

    remote = True
    lock_file = None

    def __init__(
        self,
        url: str,
        *,
        token: str | None,
        ca_file: str | None,
        durability: Callable[[], Op[Durability]],
        patience: float,
    ) -> None:
        if token is not None and not (token.isascii() and is_plain(token) and token.strip()):
            raise InvalidStoreURL("A token is the text that `fairlane token create` printed.")
        address = address_of(url)
        head = Head(address, None if token is None else token.strip())
        context = _context(ca_file) if address.tls else None
        self._async = AsyncSide(head, context)
        self._sync = SyncSide(head, context)
        self._durability = durability
        self._patience = patience

    async def run(self, op: Op[T]) -> T:
        return await persist_async(
            lambda: self._async.attempt(op), op.patience(self._patience), op.pause
        )

    def run_sync(self, op: Op[T]) -> T:
        return persist(lambda: self._sync.attempt(op), op.patience(self._patience), op.pause)

    def join(self, connection: Any) -> NoReturn:  # noqa: ARG002
        raise NotSupported(_ALONE)

    def transaction(self) -> NoReturn:
        raise NotSupported(_ALONE)

    def transaction_sync(self) -> NoReturn:
        raise NotSupported(_ALONE)

    def serve_worker(self, worker_id: str, lease: float) -> None:
        """Do nothing: the server has the sessions."""

    async def listen(self) -> HttpWakeup:
        return HttpWakeup()

    async def durability(self) -> Durability:
        return await self.run(self._durability())

    async def aclose(self) -> None:
        await self._async.aclose()
        self._sync.close()

    def close(self) -> None:
        self._async.close()
        self._sync.close()


def _context(ca_file: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError):
        raise InvalidStoreURL(
            "ca_file is a file of certificates in PEM that can be read."
        ) from None
