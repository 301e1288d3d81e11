"""Documents: see core/documents.py."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import astuple

from fairlane.core.documents import Document, Order, Place, Written
from fairlane.core.encryption import ENCRYPTION, REQUIRED
from fairlane.core.errors import EncryptionRequired
from fairlane.core.flow import Flow
from fairlane.engines.postgres.calls import Query
from fairlane.engines.postgres.context import Context
from fairlane.engines.postgres.statements import load

SQL = load("documents")

_ENDS: dict[Order, Place] = {Order.OLDEST: (-(2**63), ""), Order.NEWEST: (2**63 - 1, "")}


def read_documents(
    self: Context, kind: str, ids: Sequence[str]
) -> Flow[tuple[int, list[Document | None]]]:
    now, documents = yield from _read("read", kind, list(ids))
    found = {each.id: each for each in documents}
    return now, [found.get(each) for each in ids]


def find_document(self: Context, kind: str, alias: str) -> Flow[tuple[int, Document] | None]:
    rows = yield Query(SQL["find"], (kind, alias))
    return (rows[0][0], Document(*rows[0][1:])) if rows else None


def list_documents(
    self: Context, kind: str, order: Order, limit: int, after: Place | None = None, skip: int = 0
) -> Flow[tuple[int, list[Document]]]:
    return (yield from _read(order, kind, *(after or _ENDS[order]), limit, skip))


def _read(statement: str, *parameters: object) -> Flow[tuple[int, list[Document]]]:
    # The time stands beside what is found. Where nothing is, it costs a call of its own.
    rows = yield Query(SQL[statement], parameters)
    ((now,),) = [rows[0][:1]] if rows else (yield Query(SQL["now"]))
    return now, [Document(*row) for _, *row in rows]


def write_documents(
    self: Context,
    kind: str,
    puts: Sequence[Document],
    drops: Sequence[Document] = (),
    most: int | None = None,
) -> Flow[Written]:
    rows = [*map(astuple, puts), *((each.id, None, *astuple(each)[2:]) for each in drops)]
    columns = [list(column) for column in zip(*rows, strict=True)]
    ((written,),) = yield Query(SQL["write"], (kind, *columns, most))
    return Written(written)


def add_documents(self: Context, kind: str, puts: Sequence[Document]) -> Flow[Written]:
    """Store new documents without aliases. That takes no lock which others would wait for until a
    caller's transaction ends."""
    columns = [list(column) for column in zip(*map(astuple, puts), strict=True)]
    ids, values, ats, ends, *_ = columns
    ((added,),) = yield Query(SQL["add"], (kind, ids, values, ats, ends))
    return Written.DONE if added == len(puts) else Written.OVERTAKEN


def expire_documents(self: Context, kind: str, limit: int) -> Flow[int]:
    ((expired,),) = yield Query(SQL["expire"], (kind, limit))
    return int(expired)


def refuse_plain() -> Flow[None]:
    """Do what core/encryption.py says, with a statement that costs less."""
    ((required,),) = yield Query(SQL["exists"], (ENCRYPTION, REQUIRED))
    if required:
        raise EncryptionRequired
