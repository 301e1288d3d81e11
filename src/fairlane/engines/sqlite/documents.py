"""Documents: see core/documents.py."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from fairlane.core.documents import Document, Order, Place, Written
from fairlane.core.encryption import ENCRYPTION, REQUIRED
from fairlane.core.errors import EncryptionRequired
from fairlane.core.flow import Flow
from fairlane.engines.files import statements
from fairlane.engines.sqlite.calls import Execute, ExecuteMany
from fairlane.engines.sqlite.context import Context

replace = msgspec.structs.replace

SQL = statements(__package__, "documents")

_ENDS: dict[Order, Place] = {Order.OLDEST: (-(2**63), ""), Order.NEWEST: (2**63 - 1, "")}


def read_documents(
    self: Context, kind: str, ids: Sequence[str]
) -> Flow[tuple[int, list[Document | None]]]:
    rows = yield Execute(SQL["read"], (kind, json.dumps(list(ids))))
    found = {row[0]: Document(*row) for row in rows}
    return self.clock(), [found.get(each) for each in ids]


def find_document(self: Context, kind: str, alias: str) -> Flow[tuple[int, Document] | None]:
    row = (yield Execute(SQL["find"], (kind, alias))).fetchone()
    return None if row is None else (self.clock(), Document(*row))


def list_documents(
    self: Context, kind: str, order: Order, limit: int, after: Place | None = None, skip: int = 0
) -> Flow[tuple[int, list[Document]]]:
    rows = yield Execute(SQL[order], (kind, *(after or _ENDS[order]), limit, skip))
    return self.clock(), [Document(*row) for row in rows]


def write_documents(
    self: Context,
    kind: str,
    puts: Sequence[Document],
    drops: Sequence[Document] = (),
    most: int | None = None,
) -> Flow[Written]:
    # Nobody else writes until the end of the operation.
    changed = (*puts, *drops)
    _, stored = yield from read_documents(self, kind, [each.id for each in changed])
    if any(
        each.version != (0 if found is None else found.version)
        for each, found in zip(changed, stored, strict=True)
    ):
        return Written.OVERTAKEN
    for each in puts:
        ((taken,),) = yield Execute(SQL["taken"], (kind, each.alias, each.id))
        if taken:
            return Written.TAKEN
    if most is not None and (new := sum(not each.version for each in puts)):
        ((count,),) = yield Execute(SQL["count"], (kind,))
        if count + new > most:
            return Written.FULL
    yield ExecuteMany(SQL["drop"], [(kind, each.id) for each in drops])
    values = (msgspec.structs.astuple(replace(each, version=each.version + 1)) for each in puts)
    yield ExecuteMany(SQL["put"], [(kind, *each) for each in values])
    return Written.DONE


def expire_documents(self: Context, kind: str, limit: int) -> Flow[int]:
    expired = yield Execute(SQL["expire"], (kind, self.clock(), limit))
    return int(expired.rowcount)


def refuse_plain() -> Flow[None]:
    """Do what core/encryption.py says, with a statement that costs less."""
    ((required,),) = yield Execute(SQL["exists"], (ENCRYPTION, REQUIRED))
    if required:
        raise EncryptionRequired
