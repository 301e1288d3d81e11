"""Payloads by reference: what is too large for a task is kept apart, as a blob.

    {"$blob":{"at":"file","size":300123,"sha256":"<64 hex digits>"}}

This is what the store holds as the task's payload. `at` names the kind of blob store, `size` and
`sha256` are those of the payload, checked when it is read. The blob's key is made from the task's
id and the hash: a reference leads to nothing but its own task's blob, whoever wrote it.

A blob is written before its task is submitted. Nobody deletes it with its task; a sweep deletes
blobs older than `limits.BLOB_GRACE_SECONDS` whose task does not exist. So what a refused
submission or a crash leaves behind goes away too, wherever tasks are deleted.

This is the form, and the blob store that every engine has: documents, in chunks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Final, NamedTuple, Protocol

import msgspec

from fairlane.core import encryption, limits, sealing
from fairlane.core.documents import (
    Document,
    Documents,
    Order,
    Place,
    rewrites,
    write,
)
from fairlane.core.errors import BlobDamaged, InvalidPayload, PayloadTooLarge
from fairlane.core.flow import Flow, reads
from fairlane.core.ids import new_id
from fairlane.core.priority import MICROSECONDS

OPENING: Final = b'{"$blob":{"at":"'
IN_STORE: Final = "store"
"""The kind of blobs that are in the store itself."""

_FORM: Final = re.compile(
    rb'\{"\$blob":\{"at":"([a-z0-9_-]{1,40})","size":(\d{1,12}),"sha256":"([0-9a-f]{64})"\}\}'
)


_KEY: Final = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.[0-9a-f]{64}")


class BlobStore(Protocol):
    """Where blobs are kept. Calls block, and come from any thread.

    They raise OSError or BlobsUnavailable while it is away, which counts as passing.
    """

    @property
    def kind(self) -> str:
        """What references call it: 1 to 40 characters out of a-z 0-9 _ -, but not "store"."""

    def put(self, key: str, content: bytes) -> None:
        """Keep a blob, and return once it is safe. The same key again replaces it."""

    def get(self, key: str) -> bytes | None:
        """Return a blob, or None if it is gone for good."""

    def delete(self, key: str, older_than: float) -> None:
        """Delete a blob if it was written more than that many seconds ago."""

    def keys(self, older_than: float) -> Iterator[str]:
        """Return the keys of blobs that were written more than that many seconds ago."""

    def adopt(self, owner: str) -> str:
        """Return the id of the store that these blobs belong to: the first that ever asked."""


class Reference(NamedTuple):
    """What a task's payload says of its blob."""

    kind: str
    size: int
    sha256: str

    def key(self, task_id: str) -> str:
        """Return the key of the blob of this task."""
        return f"{task_id}.{self.sha256}"

    def payload(self) -> bytes:
        """Return what the task has as its payload."""
        return b'%b%b","size":%d,"sha256":"%b"}}' % (
            OPENING,
            self.kind.encode(),
            self.size,
            self.sha256.encode(),
        )

    def check(self, payload: bytes) -> bytes:
        """Return the payload if it is the one this refers to. Raises BlobDamaged."""
        if len(payload) == self.size and sha256(payload).hexdigest() == self.sha256:
            return payload
        raise BlobDamaged(
            f"The blob of this payload was altered: it has {len(payload):,} bytes (expected "
            f"{self.size:,}), or another hash. Restore it from a backup, or submit the task again."
        )


def reference(kind: str, payload: bytes) -> Reference:
    """Return a reference to a payload."""
    return Reference(kind, len(payload), sha256(payload).hexdigest())


def parsed(payload: bytes) -> Reference | None:
    """Return the reference that a payload is; None for all others."""
    # First what costs next to nothing: every payload passes here.
    if not payload.startswith(OPENING) or (found := _FORM.fullmatch(payload)) is None:
        return None
    kind, size, digest = found.groups()
    return Reference(kind.decode(), int(size), digest.decode())


def reserved() -> InvalidPayload:
    """Return the error for a payload that only looks like a reference."""
    return InvalidPayload(
        'A payload of the form {"$blob": …} is reserved for payloads by reference: use another key.'
    )


def task_id_of(key: str) -> str | None:
    """Return the id of the task that a blob belongs to; None for what is not a blob's key."""
    found = _KEY.fullmatch(key)
    return None if found is None else found[1]


class BlobKeys(NamedTuple):
    """Keys of blobs, and where to go on; None at the end."""

    keys: list[str]
    after: Place | None


# Operations, see `store`. A blob is a head and chunks, which are documents of a kind each: listing
# the heads does not read the chunks. The head names every upload that was ever begun, so none is
# forgotten; it says which one is complete once that is written.

_HEADS: Final = "blob"
_CHUNKS: Final = "blob_chunk"
_OWNERS: Final = "blob_owner"

replace = msgspec.structs.replace


class _Head(msgspec.Struct, frozen=True, array_like=True):
    complete: str | None
    uploads: dict[str, int]
    """The number of chunks by upload."""


_head_decoder = msgspec.json.Decoder(_Head)


def _chunk_ids(upload: str, count: int) -> list[str]:
    return [f"{upload}:{number}" for number in range(count)]


@rewrites
def put_blob(self: Documents, key: str, content: bytes) -> Flow[None]:
    if len(content) > limits.STORED_BLOB_BYTES:
        raise PayloadTooLarge(
            f"A blob in the store has at most {limits.STORED_BLOB_BYTES:,} bytes, not "
            f"{len(content):,}."
        )
    if not sealing.is_sealed(content):
        yield from encryption.refuse_plain(self)
    size = limits.BLOB_CHUNK_BYTES
    chunks = [content[start : start + size] for start in range(0, len(content), size)]
    now, (stored,) = yield from self.read_documents(_HEADS, [key])
    stored = stored or Document(key, msgspec.json.encode(_Head(None, {})), now)
    head = _head_decoder.decode(stored.value)
    upload = new_id()
    begun = replace(head, uploads={**head.uploads, upload: len(chunks)})
    stored = replace(stored, value=msgspec.json.encode(begun), at=now)
    yield from write(self, _HEADS, [stored])
    for id, chunk in zip(_chunk_ids(upload, len(chunks)), chunks, strict=True):
        yield from write(self, _CHUNKS, [Document(id, chunk, now)])
    done = replace(begun, complete=upload)
    value = msgspec.json.encode(done)
    yield from write(self, _HEADS, [replace(stored, value=value, version=stored.version + 1)])


@reads
def blob(self: Documents, key: str) -> Flow[bytes | None]:
    _, (stored,) = yield from self.read_documents(_HEADS, [key])
    head = _Head(None, {}) if stored is None else _head_decoder.decode(stored.value)
    if head.complete is None:
        return None
    content: list[bytes] = []
    for id in _chunk_ids(head.complete, head.uploads[head.complete]):
        _, (chunk,) = yield from self.read_documents(_CHUNKS, [id])
        if chunk is None:
            return None
        content.append(chunk.value)
    return b"".join(content)


@rewrites
def drop_blob(self: Documents, key: str, older_than: float) -> Flow[None]:
    now, (stored,) = yield from self.read_documents(_HEADS, [key])
    if stored is None or not _is_older(stored, now, older_than):
        return
    for upload, count in _head_decoder.decode(stored.value).uploads.items():
        for id in _chunk_ids(upload, count):
            # Chunks are written once. One that is not there was never written, or is dropped.
            yield from self.write_documents(_CHUNKS, [], [Document(id, b"", 0, version=1)])
    yield from write(self, _HEADS, [], [stored])


@reads
def old_blobs(
    self: Documents, older_than: float, limit: int, after: Place | None = None
) -> Flow[BlobKeys]:
    now, heads = yield from self.list_documents(_HEADS, Order.OLDEST, limit, after)
    old = [head for head in heads if _is_older(head, now, older_than)]
    more = len(old) == limit
    return BlobKeys([head.id for head in old], (old[-1].at, old[-1].id) if more else None)


def _is_older(head: Document, now: int, seconds: float) -> bool:
    return head.at < now - seconds * MICROSECONDS


@rewrites
def blob_owner(self: Documents) -> Flow[str]:
    now, (stored,) = yield from self.read_documents(_OWNERS, [_OWNERS])
    if stored is None:
        stored = Document(_OWNERS, new_id().encode(), now)
        yield from write(self, _OWNERS, [stored])
    return stored.value.decode()
