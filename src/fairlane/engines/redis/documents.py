"""Documents: see core/documents.py.

One is stored as its version, its `at` and when it expires (8 bytes each), how long its alias is (a
byte), the alias, the value.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from fairlane.core.documents import Document, Order, Place, Written
from fairlane.core.flow import Flow
from fairlane.engines.redis.calls import Argument
from fairlane.engines.redis.context import Context, pairs
from fairlane.engines.redis.scripts import Script, script

READ = script("read_documents")
FIND = script("find_document")
LIST = script("list_documents")
PUT = script("put_documents")
WRITE = script("write_documents")
EXPIRE = script("expire_documents")

_HEAD = struct.Struct(">QqqB")
_VERSION = struct.Struct(">Q")
_NEVER = 2**63 - 1


def read_documents(
    self: Context, kind: str, ids: Sequence[str]
) -> Flow[tuple[int, list[Document | None]]]:
    now, stored = yield from self.call(READ, kind, *ids)
    found = [_document(id, each) if each else None for id, each in zip(ids, stored, strict=True)]
    return int(now), found


def find_document(self: Context, kind: str, alias: str) -> Flow[tuple[int, Document] | None]:
    now, id, stored = yield from self.call(FIND, kind, alias)
    return (int(now), _document(id.decode(), stored)) if stored else None


def list_documents(
    self: Context, kind: str, order: Order, limit: int, after: Place | None = None, skip: int = 0
) -> Flow[tuple[int, list[Document]]]:
    place = after or ("+inf" if order is Order.NEWEST else "-inf", "")
    now, found = yield from self.call(LIST, kind, order, limit, *place, skip)
    return int(now), [_document(id.decode(), stored) for id, stored in pairs(found)]


def write_documents(
    self: Context,
    kind: str,
    puts: Sequence[Document],
    drops: Sequence[Document] = (),
    most: int | None = None,
) -> Flow[Written]:
    # What is bounded in number is refused, like tasks, when memory is full.
    return (yield from write_by(self, WRITE if most is None else PUT, kind, puts, drops, most))


def write_by(
    self: Context,
    called: Script,
    kind: str,
    puts: Sequence[Document],
    drops: Sequence[Document] = (),
    most: int | None = None,
) -> Flow[Written]:
    """Call a script that writes documents."""
    answer = yield from self.call(called, *written(kind, puts, drops, most))
    return Written(answer.decode())


def written(
    kind: str,
    puts: Sequence[Document],
    drops: Sequence[Document] = (),
    most: int | None = None,
) -> list[Argument]:
    """Return the arguments that lib/documents.lua describes."""
    changes: list[Argument] = [kind, b"" if most is None else most]
    for each in puts:
        changes += (each.id, _VERSION.pack(each.version), _packed(each), each.at)
        changes.append(b"" if each.expires_at is None else each.expires_at)
    for each in drops:
        changes += (each.id, _VERSION.pack(each.version), b"", b"", b"")
    return changes


def expire_documents(self: Context, kind: str, limit: int) -> Flow[int]:
    return int((yield from self.call(EXPIRE, kind, limit)))


def _packed(document: Document) -> bytes:
    """As it is stored, one version further."""
    alias = (document.alias or "").encode()
    ends = _NEVER if document.expires_at is None else document.expires_at
    head = _HEAD.pack(document.version + 1, document.at, ends, len(alias))
    return head + alias + document.value


def _document(id: str, stored: bytes) -> Document:
    version, at, ends, length = _HEAD.unpack_from(stored)
    alias, value = stored[_HEAD.size : _HEAD.size + length], stored[_HEAD.size + length :]
    expires_at = None if ends == _NEVER else ends
    return Document(id, value, at, expires_at, alias.decode() or None, version)
