"""The workers that speak the worker protocol: whose they are, and what they registered with.

A worker's id says which token it was given to: whoever reads ids elsewhere cannot use them with a
token of their own, and every server process can tell without asking the store.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from hashlib import blake2b
from typing import Final

from fairlane.client.batching import Batcher
from fairlane.core import limits
from fairlane.core.errors import WorkerGone
from fairlane.core.ids import dashed, is_id
from fairlane.core.model import Beat, NewWorker, Pulse, Worker, WorkerStatus
from fairlane.server.identity import Identity

REMEMBERED: Final = 10_000
TOUCH_SHARE: Final = 6
"""A worker that was silent for this part of its lease is taken for alive again at its next call."""

_NONCE, _TAG = 10, 6  # bytes
_VERSION = 0x8 << 76  # of UUIDs that everyone makes as they like
_VARIANT = 0x2 << 62
_FREE = ~(0xF << 76 | 0x3 << 62)


def new_worker_id(identity: Identity, name: str | None = None) -> str:
    """A random id for a worker that registers with this token; with a name, it begins with that."""
    return _signed(secrets.token_bytes(_NONCE), identity, "" if name is None else f"{name}.")


def check_owner(worker_id: str, identity: Identity) -> None:
    """Raise WorkerGone unless the id was given to this token."""
    if not owns(worker_id, identity):
        raise WorkerGone


def owns(worker_id: str, identity: Identity) -> bool:
    """Whether the id was given to this token."""
    name, dot, number = worker_id.rpartition(".")
    if not is_id(number):
        return False
    nonce = bytes.fromhex(number.replace("-", ""))[:_NONCE]
    return _signed(nonce, identity, name + dot) == worker_id


def _signed(nonce: bytes, identity: Identity, prefix: str) -> str:
    # The bits that make it a UUID are set first, so that they are part of what is signed.
    number = (int.from_bytes(nonce) << 8 * _TAG) & _FREE | _VERSION | _VARIANT
    head = number.to_bytes(16)[:_NONCE]
    owner = (prefix + (identity.token_id or "")).encode()
    tag = blake2b(head + owner, digest_size=_TAG, person=b"fairlane worker").digest()
    return prefix + dashed((head + tag).hex())


class Known:
    """A worker as this process remembers it."""

    __slots__ = ("capabilities", "lease", "load", "queues", "seen_at", "status", "types")

    def __init__(self, worker: Worker | NewWorker, load: int = 0) -> None:
        self.status = WorkerStatus.ACTIVE
        self.queues = worker.queues
        self.types = worker.types
        self.capabilities = worker.capabilities
        self.lease = worker.lease
        self.load = load
        self.seen_at = float("-inf")
        """When it was last heard of here."""


class Workers:
    """What is known of workers, so that not every call has to ask the store."""

    def __init__(
        self,
        listed: Callable[[], Awaitable[list[Worker]]],
        beat: Callable[[Beat], Awaitable[Pulse]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._listed = listed
        self._beat = beat
        self._clock = clock
        self._known: OrderedDict[str, Known] = OrderedDict()
        self._finding = Batcher(self._find, limits.BATCH)

    def registered(self, worker: NewWorker) -> None:
        """A worker has registered here."""
        self._remember(worker.worker_id, Known(worker)).seen_at = self._clock()

    def forget(self, worker_id: str) -> None:
        """A worker has left, or is dead."""
        self._known.pop(worker_id, None)

    async def beat(self, beat: Beat) -> Pulse:
        """A sign of life, which the store is told of."""
        try:
            pulse = await self._beat(beat)
        except WorkerGone:
            self.forget(beat.worker_id)
            raise
        known = self._known.get(beat.worker_id)
        if known is not None:
            known.load, known.status = beat.load, pulse.status
            known.seen_at = self._clock()
        return pulse

    async def touch(self, worker_id: str) -> Known:
        """Every call of a worker is a sign of life; the store is told of it now and then. Raises
        WorkerGone."""
        known = await self._recalled(worker_id)
        if self._clock() - known.seen_at > known.lease / TOUCH_SHARE:
            await self.beat(Beat(worker_id, known.load))
        return known

    async def _recalled(self, worker_id: str) -> Known:
        known = self._known.get(worker_id)
        if known is not None:
            self._known.move_to_end(worker_id)
            return known
        found = await self._finding.send(worker_id)
        if found is None:
            raise WorkerGone
        return self._remember(worker_id, Known(found, found.load))

    def _remember(self, worker_id: str, known: Known) -> Known:
        self._known[worker_id] = known
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return known

    async def _find(self, worker_ids: Sequence[str]) -> list[Worker | None]:
        workers = {worker.worker_id: worker for worker in await self._listed()}
        return [workers.get(worker_id) for worker_id in worker_ids]
