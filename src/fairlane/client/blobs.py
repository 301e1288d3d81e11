"""An application's payloads by reference: written before submission, read before a run.

These are flows, performed in two colours (see `fairlane.core.flow`). Their calls are operations of
the store, and functions that block (those of a `BlobStore`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from fairlane import engines
from fairlane.client.blob_files import FileBlobs, folder_of
from fairlane.client.blob_s3 import Bucket, S3Blobs, bucket_of
from fairlane.core import blobs, limits
from fairlane.core.backend import Backend
from fairlane.core.blobs import IN_STORE, BlobStore, Reference
from fairlane.core.documents import Place
from fairlane.core.errors import (
    BlobMissing,
    BlobStoreMissing,
    BlobsUnavailable,
    InvalidBlobStore,
    InvalidUnique,
    NotSupported,
)
from fairlane.core.flow import Flow, Op, perform, perform_async
from fairlane.core.model import NewTask
from fairlane.core.sealing import Key, check_open

if TYPE_CHECKING:
    from fairlane.engines.sealing.driver import Keyring

T = TypeVar("T")

SWEPT = 500
"""How many blobs one step of a sweep looks at."""

SweepCursor = Place | Iterator[str] | None
"""Where a sweep goes on: in the store, or in a blob store elsewhere."""


def is_affected(task: NewTask) -> bool:
    """Return whether a payload is too large for a task, or has the form of a reference."""
    payload = task.payload
    return len(payload) > limits.PAYLOAD_BYTES or payload.startswith(blobs.OPENING)


def checked(given: str | BlobStore | None) -> str | BlobStore | None:
    """Return the setting `blobs` if it makes sense. Raises InvalidBlobStore."""
    if isinstance(given, str):
        check_url(given)
    elif given is not None and not callable(getattr(given, "put", None)):
        raise InvalidBlobStore
    return given


def check_url(url: str) -> None:
    """Raise InvalidBlobStore if this names no place for blobs. Nothing is opened."""
    if url != IN_STORE:
        _place_of(url)


def _place_of(url: str) -> Path | Bucket:
    is_bucket = url.partition(":")[0].lower() == "s3"
    return bucket_of(url) if is_bucket else folder_of(url)


def _opened(url: str) -> BlobStore:
    place = _place_of(url)
    return FileBlobs(place) if isinstance(place, Path) else S3Blobs(place)


class Blobs:
    """The blobs of an application's tasks. Without a setting those in the store can be read."""

    def __init__(
        self, setting: str | BlobStore | None, backend: Backend, keys: Sequence[Key] = ()
    ) -> None:
        self._backend = backend
        self._ops = backend.ops
        self._in_store = setting == IN_STORE
        self._outside: BlobStore | None = None
        if setting is not None and not self._in_store:
            self._outside = _opened(setting) if isinstance(setting, str) else setting
        self._keyring: Keyring | None = engines.keyring(keys) if keys else None
        self._adopted = False

    # -- flows -------------------------------------------------------------------------------------

    def save(self, tasks: Sequence[NewTask], *, joined: bool = False) -> Flow[list[NewTask]]:
        """Write the payloads that are too large, and return the tasks with references to them.

        `joined`: this is performed in a caller's own transaction, which may be rolled back.
        """
        if self._outside is not None and not joined:
            yield from self._adopt(self._outside)
        saved = list(tasks)
        for place, task in enumerate(tasks):
            if is_affected(task):
                saved[place] = yield from self._save(task)
        return saved

    def load(self, task_id: str, payload: bytes) -> Flow[bytes]:
        """Return the payload that a payload refers to, or the payload itself.

        Raises BlobStoreMissing or KeyMissing if that is a matter of settings, BlobsUnavailable if
        it may work later, BlobMissing, BlobDamaged or SealBroken if it never will.
        """
        found = blobs.parsed(payload)
        if found is None:
            return payload
        content = yield from self._read(found, found.key(task_id))
        if content is None:
            raise BlobMissing
        check_open(content)
        return found.check(content)

    def sweep(self, after: SweepCursor = None) -> Flow[SweepCursor]:
        """Delete blobs whose tasks do not exist, among the next few that are old enough.

        Returns where to go on; None at the end.
        """
        keys, rest = yield from self._old(after)
        owners = {key: blobs.task_id_of(key) for key in keys}
        known = {key: task_id for key, task_id in owners.items() if task_id is not None}
        tasks = (yield self._ops.get(list(known.values()))) if known else []
        gone = [key for key, task in zip(known, tasks, strict=True) if task is None]
        for key in gone:
            yield from self._drop(key)
        return rest

    async def read(self, task_id: str, payload: bytes) -> bytes:
        """Perform `load`, as a worker does before a run."""
        return await self.run(self.load(task_id, payload))

    # -- performing --------------------------------------------------------------------------------

    async def run(self, flow: Flow[T], run: Callable[[Op[Any]], Any] | None = None) -> T:
        """Perform a flow. `run` performs its operations on the store."""
        run = run or self._backend.run

        async def call(request: Any) -> Any:
            return await (run(request) if isinstance(request, Op) else asyncio.to_thread(request))

        return await perform_async(flow, call)

    def run_sync(self, flow: Flow[T], run: Callable[[Op[Any]], Any] | None = None) -> T:
        """Blocking twin of `run`."""
        run = run or self._backend.run_sync

        def call(request: Any) -> Any:
            return run(request) if isinstance(request, Op) else request()

        return perform(flow, call)

    # -- parts -------------------------------------------------------------------------------------

    def _save(self, task: NewTask) -> Flow[NewTask]:
        if len(task.payload) <= limits.PAYLOAD_BYTES:
            if blobs.parsed(task.payload) is not None:
                raise blobs.reserved()
            return task
        self._check_unique(task)
        if self._in_store:
            if self._backend.driver.remote:
                raise NotSupported(
                    'blobs="store" needs the store\'s own URL: over HTTP, use a folder that the '
                    "workers see as well (file:///…)."
                )
            found = blobs.reference(IN_STORE, task.payload)
            yield self._ops.put_blob(found.key(task.task_id), task.payload)
        elif self._outside is not None:
            found = blobs.reference(self._outside.kind, task.payload)
            key = found.key(task.task_id)
            content = task.payload
            if self._keyring is not None:
                content = self._keyring.seal_blob(key, content)
            yield from _blocking(partial(self._outside.put, key, content))
        else:
            raise BlobStoreMissing("The payload is too large for a task: give the setting blobs.")
        return msgspec.structs.replace(task, payload=found.payload())

    def _check_unique(self, task: NewTask) -> None:
        if (
            self._backend.driver.remote
            and task.unique is not None
            and task.unique.arguments is not None
        ):
            raise InvalidUnique(
                "A server cannot read the arguments of a payload by reference: be unique by all "
                "arguments, or use the store's own URL."
            )

    def _read(self, found: Reference, key: str) -> Flow[bytes | None]:
        if found.kind == IN_STORE and not self._backend.driver.remote:
            content: bytes | None = yield self._ops.blob(key)
        elif self._outside is not None and found.kind == self._outside.kind:
            content = yield from _blocking(partial(self._outside.get, key))
            if content is not None and self._keyring is not None:
                content = self._keyring.open_blob(key, content)
        else:
            raise BlobStoreMissing(
                f"The payload is in a blob store of the kind {found.kind!r}, which this process "
                "cannot read: give the setting blobs, and the store's own URL for those in the "
                "store."
            )
        return content

    def _old(self, after: SweepCursor) -> Flow[tuple[list[str], SweepCursor]]:
        seconds = limits.BLOB_GRACE_SECONDS
        if self._in_store:
            place = after if isinstance(after, tuple) else None
            found = yield self._ops.old_blobs(seconds, SWEPT, place)
            return found.keys, found.after
        if self._outside is None:
            return [], None
        yield from self._adopt(self._outside)
        rest = after if isinstance(after, Iterator) else self._outside.keys(seconds)
        keys = yield from _blocking(lambda: list(islice(rest, SWEPT)))
        return keys, rest if len(keys) == SWEPT else None

    def _drop(self, key: str) -> Flow[None]:
        if self._outside is None:
            yield self._ops.drop_blob(key, limits.BLOB_GRACE_SECONDS)
        else:
            yield from _blocking(partial(self._outside.delete, key, limits.BLOB_GRACE_SECONDS))

    def _adopt(self, outside: BlobStore) -> Flow[None]:
        """Check that the blobs belong to this store: another one would sweep them away."""
        if self._adopted or self._backend.driver.remote:
            return
        own = yield self._ops.blob_owner()
        owner = yield from _blocking(partial(outside.adopt, own))
        if owner != own:
            raise InvalidBlobStore(
                "These blobs belong to another store: give each store a folder of its own."
            )
        self._adopted = True


def _blocking(call: Callable[[], Any]) -> Flow[Any]:
    """Make a call of a `BlobStore`, as a call of a flow."""
    try:
        return (yield call)
    except OSError as error:
        raise BlobsUnavailable(
            f"The blob store cannot be used: {error}. Check that it is there, that this process "
            "may read and write it, and that there is room."
        ) from error
