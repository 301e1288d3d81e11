"""Workers of the worker protocol: their ids, and what they registered with.

A worker's id is signed for the token that registered it: somebody who reads the id elsewhere cannot
use it with another token, and every server process can check that without the store.
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
from fairlane.core.holdings import Comparison
from fairlane.core.ids import dashed, is_id
from fairlane.core.leases import amount_of
from fairlane.core.model import Beat, NewWorker, Pulse, Worker, WorkerStatus
from fairlane.server.auth import Identity
from fairlane.server.errors import TooManyWorkers

CACHED_WORKERS: Final = 10_000
TOUCH_SHARE: Final = 6
"""A call sends a heartbeat to the store if the last one is older than 1/6 of the lease."""

_NONCE, _TAG = 10, 6  # bytes
_VERSION = 0x8 << 76  # of UUIDs in a format of our own
_VARIANT = 0x2 << 62
_FREE = ~(0xF << 76 | 0x3 << 62)


def new_worker_id(identity: Identity, name: str | None = None) -> str:
    """Return a random id for a worker that registers with this token. It begins with `name`."""
    return _sign(secrets.token_bytes(_NONCE), identity, "" if name is None else f"{name}.")


def check_owner(worker_id: str, identity: Identity) -> None:
    """Raise WorkerGone unless the id belongs to this token."""
    if not owns(worker_id, identity):
        raise WorkerGone


def owns(worker_id: str, identity: Identity) -> bool:
    """Return whether the id belongs to this token."""
    name, dot, number = worker_id.rpartition(".")
    if not is_id(number):
        return False
    nonce = bytes.fromhex(number.replace("-", ""))[:_NONCE]
    return _sign(nonce, identity, name + dot) == worker_id


def _sign(nonce: bytes, identity: Identity, prefix: str) -> str:
    # The version bits of the UUID are set first, because they are signed as well.
    number = (int.from_bytes(nonce) << 8 * _TAG) & _FREE | _VERSION | _VARIANT
    head = number.to_bytes(16)[:_NONCE]
    owner = (prefix + (identity.token_id or "")).encode()
    tag = blake2b(head + owner, digest_size=_TAG, person=b"fairlane worker").digest()
    return prefix + dashed((head + tag).hex())


_MODEST: Final = limits.WORKERS_NAME_BYTES // limits.WORKERS
"""So many characters of names fit into the bound of a token, whatever its other workers name."""


def _amount_of(worker: Worker | NewWorker) -> int:
    return amount_of(worker.capabilities, worker.queues, worker.types)


class KnownWorker:
    """A worker in the cache of this process."""

    __slots__ = (
        "capabilities",
        "compared_at",
        "comparison",
        "lease",
        "queues",
        "seen_at",
        "start_within",
        "status",
        "types",
    )

    def __init__(self, worker: Worker | NewWorker) -> None:
        self.status = WorkerStatus.ACTIVE
        self.queues = worker.queues
        self.types = worker.types
        self.capabilities = worker.capabilities
        self.lease = worker.lease
        self.start_within = worker.start_within
        self.seen_at = float("-inf")
        """When its last heartbeat was sent to the store."""
        self.comparison = Comparison()
        self.compared_at = float("-inf")
        """When the tasks that it lists were last compared with the store."""


class Workers:
    """A cache of workers, so that not every call needs the store."""

    def __init__(
        self,
        list_all: Callable[[], Awaitable[list[Worker]]],
        beat: Callable[[Beat], Awaitable[Pulse]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._list_all = list_all
        self._beat = beat
        self._clock = clock
        self._known: OrderedDict[str, KnownWorker] = OrderedDict()
        self._finding = Batcher(self._find, limits.BATCH)

    def remember(self, worker: NewWorker) -> None:
        """Add a worker that has registered here."""
        self._put(worker.worker_id, KnownWorker(worker)).seen_at = self._clock()

    def forget(self, worker_id: str) -> None:
        """Remove a worker that has left or is dead."""
        self._known.pop(worker_id, None)

    async def check_room(self, identity: Identity, worker: NewWorker, *, known: bool) -> None:
        """Raise TooManyWorkers if this token has as many workers as it may have, or if they name
        too much together. `known`: the worker has registered before.

        Every look at the store reads all workers: nobody may make that slow for the others.
        """
        amount = _amount_of(worker)
        if known and amount <= _MODEST:
            return  # many register again at once when they lose their server
        owned = [
            each
            for each in await self._list_all()
            if owns(each.worker_id, identity) and each.worker_id != worker.worker_id
        ]
        dead = sum(each.status is WorkerStatus.DEAD for each in owned)
        if not known and (len(owned) - dead >= limits.WORKERS or dead >= limits.WORKERS_DEAD):
            raise TooManyWorkers
        if amount + sum(map(_amount_of, owned)) > limits.WORKERS_NAME_BYTES:
            raise TooManyWorkers(
                "The workers of this token name capabilities, queues and types of more than "
                f"{limits.WORKERS_NAME_BYTES:,} characters together: name fewer, or none to take "
                "all of them."
            )

    async def beat(self, beat: Beat) -> Pulse:
        """Send a heartbeat to the store. Raises WorkerGone."""
        try:
            pulse = await self._beat(beat)
        except WorkerGone:
            self.forget(beat.worker_id)
            raise
        known = self._known.get(beat.worker_id)
        if known is not None:
            known.status = pulse.status
            known.seen_at = self._clock()
        return pulse

    async def touch(self, worker_id: str) -> KnownWorker:
        """Count a call of a worker as a heartbeat. The store gets one now and then. Raises
        WorkerGone."""
        known = await self._get(worker_id)
        if self._clock() - known.seen_at > known.lease / TOUCH_SHARE:
            await self.beat(Beat(worker_id))
        return known

    async def find(self, worker_id: str) -> Worker:
        """Return a worker as the store knows it. Raises WorkerGone."""
        found = await self._finding.send(worker_id)
        if found is None:
            raise WorkerGone
        return found

    async def _get(self, worker_id: str) -> KnownWorker:
        known = self._known.get(worker_id)
        if known is not None:
            self._known.move_to_end(worker_id)
            return known
        return self._put(worker_id, KnownWorker(await self.find(worker_id)))

    def _put(self, worker_id: str, known: KnownWorker) -> KnownWorker:
        self._known[worker_id] = known
        if len(self._known) > CACHED_WORKERS:
            self._known.popitem(last=False)
        return known

    async def _find(self, worker_ids: Sequence[str]) -> list[Worker | None]:
        workers = {worker.worker_id: worker for worker in await self._list_all()}
        return [workers.get(worker_id) for worker_id in worker_ids]
