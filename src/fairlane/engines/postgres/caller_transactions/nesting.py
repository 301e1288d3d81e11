"""Operations inside transactions of others: flows around their flows.

An operation may begin and commit transactions, or rely on each of its statements being one. Inside
a caller's transaction these become savepoints, so that the operation still takes effect as a whole,
rolls back only itself, and can continue after a statement that failed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from fairlane.core.errors import InvalidConnection, NotSupported, StoreError
from fairlane.core.flow import Flow, Mode, Op
from fairlane.engines.postgres.calls import (
    ASK_NESTED,
    BEGIN,
    COMMIT,
    ROLLBACK,
    SWEEP,
    Apart,
    Chore,
    Query,
    Script,
    Wake,
)
from fairlane.engines.postgres.session import GIVE_BACK, IDENTITY, START
from fairlane.engines.postgres.wakeup import CHANNEL

T = TypeVar("T")
Setting = tuple[str, str]

_BEGIN = Script(START)
_NOTIFY = Query(f"SELECT pg_notify('{CHANNEL}', '')")

_ENTER = Script("SAVEPOINT fairlane")
_LEAVE = Script("RELEASE SAVEPOINT fairlane")
_UNDO = Script("ROLLBACK TO SAVEPOINT fairlane")
_MARK = Script("SAVEPOINT fairlane_mark")
_UNMARK = Script("RELEASE SAVEPOINT fairlane_mark")
_BACK_TO_MARK = Script("ROLLBACK TO SAVEPOINT fairlane_mark")
_INNER_BEGIN = Script("SAVEPOINT fairlane_begin")
_INNER_COMMIT = Script("RELEASE SAVEPOINT fairlane_begin")
_INNER_ROLLBACK = Script("ROLLBACK TO SAVEPOINT fairlane_begin")

_ALONE = {"pause", "limit", "claim"}
"""Operations that lock what every claim needs: a long transaction would block all workers."""


def per_transaction(flow: Flow[T]) -> Flow[T]:
    """Return a flow that sets up each of its transactions: behind a pooler, sessions are shared."""
    begun = False

    def answer(request: Any) -> Flow[Any]:
        nonlocal begun
        if request is BEGIN:
            yield _BEGIN
            begun = True
        elif request is COMMIT or request is ROLLBACK:
            yield request
            begun = False
        elif begun or not isinstance(request, Query | Script | Apart):
            return (yield request)
        elif isinstance(request, Apart):
            return (yield from per_transaction(request.flow()))
        else:
            yield _BEGIN
            try:
                reply = yield request
            except Exception:
                yield ROLLBACK
                raise
            yield COMMIT
            return reply
        return None

    return _answer_calls(flow, answer)


class StoreIdentity:
    """Knows which store this is, to refuse connections to another one."""

    def __init__(self) -> None:
        self._known: Setting | None = None

    def check(self, found: Setting) -> Flow[None]:
        """Raise InvalidConnection if a connection leads to another store."""
        if found != self._known:
            self._known = yield Apart(_identify)
        if found != self._known:
            raise InvalidConnection(
                f"This connection leads to another Fairlane store, in database {found[0]}: no "
                "worker of this store would find the task. Connect to the database of this "
                "store's URL."
            )


def _identify() -> Flow[Setting]:
    ((database, store),) = yield Query(IDENTITY)
    return database, store


def nest(op: Op[T], store: StoreIdentity, borrow: str) -> Flow[T]:
    """Perform an operation inside a transaction that a caller began and will commit.

    `borrow` is the statement that sets up the transaction until the operation is done.
    """
    if op.mode is Mode.SCHEMA or op.name in _ALONE:
        raise NotSupported(
            f"{op.name} cannot be part of a transaction: all workers would wait for its end. Call "
            "it without a connection."
        )
    yield _ENTER
    try:
        rows = yield Query(borrow)
        *_, database, identity = rows[0]
        yield from store.check((database, identity))
        result = yield from _answer_calls(op.flow(), _Nested(op.mode, borrow).answer)
        yield Query(GIVE_BACK, ([row[0] for row in rows], [row[1] for row in rows]))
    except Exception:
        with suppress(StoreError):  # if this fails too, the transaction is lost as a whole
            yield _UNDO
            yield _LEAVE
        raise
    yield _LEAVE
    return result


class _Nested:
    """Answers the calls of an operation inside a transaction."""

    def __init__(self, mode: Mode, borrow: str) -> None:
        self._borrow = Query(borrow)
        # A statement that would have been committed by itself stays if a later one fails.
        self._keeps = mode is Mode.WRITE
        self._begun = mode is Mode.TRANSACTION
        self._done = False
        self._marked = False
        self._failed = False

    def answer(self, request: Any) -> Flow[Any]:
        if isinstance(request, Apart):
            return (yield request)
        if request is ASK_NESTED:
            return True
        if isinstance(request, Chore):
            return []
        if request is SWEEP:
            return None
        if self._failed and request is not ROLLBACK:
            yield from self._recover()
        if isinstance(request, Wake):
            # Notifies with the caller's commit: who waits at that time is not known yet.
            return (yield _NOTIFY)
        if request is BEGIN:
            yield _INNER_BEGIN
            self._begun = True
        elif request is COMMIT:
            yield _INNER_COMMIT
            self._begun = False
        elif request is ROLLBACK:
            if self._begun:  # else there is nothing to roll back
                yield _INNER_ROLLBACK
                yield _INNER_COMMIT
                self._begun = self._failed = False
        else:
            return (yield from self._statement(request))
        return None

    def _statement(self, request: Query | Script) -> Flow[Any]:
        if self._done and self._keeps and not self._begun:
            if self._marked:
                yield _UNMARK
            yield _MARK
            self._marked = True
            self._done = False
        try:
            reply = yield request
        except Exception:
            self._failed = True
            raise
        self._done = True
        return reply

    def _recover(self) -> Flow[None]:
        """Return to the last savepoint, as the operation continues after a failure."""
        self._failed = False
        if self._begun:
            return
        if self._marked:
            yield _BACK_TO_MARK
        else:
            yield _UNDO
            yield self._borrow  # the set-up was rolled back as well


def _answer_calls(flow: Flow[T], answer: Callable[[Any], Flow[Any]]) -> Flow[T]:
    """Perform a flow, and answer each of its calls by another flow."""
    reply: Any = None
    error: Exception | None = None
    try:
        while True:
            try:
                request = flow.send(reply) if error is None else flow.throw(error)
            except StopIteration as stop:
                result: T = stop.value
                return result
            reply = error = None
            try:
                reply = yield from answer(request)
            except Exception as caught:  # noqa: BLE001 (the flow decides what it means)
                error = caught
    finally:
        flow.close()
