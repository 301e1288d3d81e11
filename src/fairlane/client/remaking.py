"""A store that was emptied below a process that uses it: FLUSHALL, DROP SCHEMA, a deleted file.

Whoever has made the store, or found it whole, may make it again, if it is empty and stays so for a
moment. A store that is damaged, of another version or somebody else's is left alone. See
docs/decisions/0025-a-store-that-was-emptied.md.
"""

from __future__ import annotations

import logging
import math
import socket
import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

from fairlane.core.audit import Action, NewAudit
from fairlane.core.backend import Backend
from fairlane.core.errors import SchemaMissing
from fairlane.core.flow import Flow, Mode, Op, perform, perform_async
from fairlane.core.tokens import LOST_TOKENS, Scope, issued

logger = logging.getLogger("fairlane.store")

T = TypeVar("T")

EMPTY_SECONDS: Final = 2.0
"""For how long a store must be empty: an operator may be about to restore it."""
FORGET_SECONDS: Final = 60.0
"""After this time without a failure, the store was made by someone else in between."""


class Remaker:
    """Performs the operations of a backend, and makes its store again if it was emptied.

    `prepare` makes an empty store ready for use. Nothing is made before `whole` is set.
    """

    def __init__(self, backend: Backend, prepare: Callable[[], Flow[None]]) -> None:
        self.whole = False
        """Whether this process has made the store, or found it whole."""
        self._backend = backend
        self._prepare = prepare
        self._run = backend.run
        self._run_sync = backend.run_sync
        self._guard = threading.Lock()
        self._missing_since = -math.inf
        self._missing_at = -math.inf
        backend.run = self.run
        backend.run_sync = self.run_sync

    async def run(self, op: Op[T]) -> T:
        try:
            return await self._run(op)
        except SchemaMissing:
            if not self._begin(op):
                raise
        try:
            await perform_async(self._remake(), self._run)
        finally:
            self._guard.release()
        return await self._run(op)

    def run_sync(self, op: Op[T]) -> T:
        try:
            return self._run_sync(op)
        except SchemaMissing:
            if not self._begin(op):
                raise
        try:
            perform(self._remake(), self._run_sync)
        finally:
            self._guard.release()
        return self._run_sync(op)

    def _begin(self, op: Op[object]) -> bool:
        """Return whether to make the store now. The caller then has the guard."""
        if not self.whole or op.mode is Mode.SCHEMA:
            return False
        now = time.monotonic()
        if now - self._missing_at > FORGET_SECONDS:
            self._missing_since = now
        self._missing_at = now
        return now - self._missing_since >= EMPTY_SECONDS and self._guard.acquire(blocking=False)

    def _remake(self) -> Flow[None]:
        ops = self._backend.ops
        if (yield ops.version()) > 0:
            return  # someone else has made it, or it is damaged: the operation will tell
        yield from self._prepare()
        self._missing_at = -math.inf
        logger.error(
            "The store was empty, and was made again. Its tasks, limits, settings, schedules and "
            "tokens are gone: restore a backup if this was not intended."
        )
        if self._backend.has_tokens:
            # Without any, a server that was closed to strangers would be open after a restart.
            token, _ = issued(LOST_TOKENS, {Scope.READ})
            yield ops.put_token(token)
        yield ops.record([NewAudit.of(f"app:{socket.gethostname()}", Action.REMAKE, "store")])
