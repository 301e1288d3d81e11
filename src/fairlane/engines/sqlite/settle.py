"""settle: what became of executing tasks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import msgspec

from fairlane.core import limits
from fairlane.core.errors import BatchTooLarge
from fairlane.core.flow import Flow, writes
from fairlane.core.machine import Fence, Settlement, Verb, verdict_on_late
from fairlane.core.model import Verdict
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import TERMINAL, State
from fairlane.engines.files import statements
from fairlane.engines.sqlite.context import Context
from fairlane.engines.sqlite.driver import WAKE, Execute
from fairlane.engines.sqlite.finish import SQL as FINISH
from fairlane.engines.sqlite.finish import End, finish
from fairlane.engines.sqlite.inspect import fetch
from fairlane.engines.sqlite.ledger import Ledger

SQL = statements(__package__, "settle")


@writes
def settle(
    self: Context, settlements: Sequence[Settlement], *, reaping: bool = False
) -> Flow[list[Verdict]]:
    if len(settlements) > limits.BATCH:
        raise BatchTooLarge(
            f"At most {limits.BATCH} tasks are settled at once, not {len(settlements):,}."
        )
    now = self.clock()
    ledger = Ledger()
    # Of two reports under one fence the first is applied and the second judged like a late one.
    wanted = list({item.fence: item for item in reversed(settlements)}.values())
    if reaping:
        wanted = yield from _still_overdue(wanted, now)
    applied: dict[Fence, Settlement] = {}
    ends = [item for item in wanted if item.change.state in TERMINAL]
    if ends:
        ended = yield from finish([_end(item, reaping) for item in ends], now, ledger)
        applied = {item.fence: item for item in ends if (item.task_id, item.attempt) in ended}
    ready = False
    for item in wanted:
        if item.change.state not in TERMINAL and (
            yield from _give_back(item, now, ledger, reaping)
        ):
            applied[item.fence] = item
            ready = ready or item.change.state is State.QUEUED
    yield from ledger.post(now)
    if ready:
        yield WAKE
    late = [item for item in settlements if applied.get(item.fence) is not item]
    verdicts = (yield from _verdicts(self, late, now, reaping)) if late else iter(())
    return [
        Verdict.APPLIED if applied.get(item.fence) is item else next(verdicts)
        for item in settlements
    ]


def _end(item: Settlement, reaping: bool) -> End:
    change = item.change
    completed = change.verb is Verb.COMPLETE
    return End(
        verb=change.verb,
        task_id=item.task_id,
        attempt=item.attempt,
        worker_id=item.worker_id,
        source=State.EXECUTING,
        state=change.state,
        reason=change.reason or "",
        error=change.error,
        # A completed run is told by its task's own row.
        outcome=None if completed else change.outcome,
        result=change.result,
        retry_count=-1 if completed else change.retry_count,
        seconds=item.seconds,
        linger=_lingers(item, reaping),
    )


def _lingers(item: Settlement, reaping: bool) -> bool:
    """A live worker still runs what the maintenance declared timed out: its slot stays taken."""
    return reaping and item.change.outcome == "timed_out"


def _give_back(item: Settlement, now: int, ledger: Ledger, reaping: bool) -> Flow[bool]:
    """A task that will run again. False when the fence did not match."""
    change = item.change
    started_at = None if item.seconds is None else now - int(item.seconds * MICROSECONDS)
    if started_at is None:
        row = (yield Execute(SQL["started_at"], (item.task_id,))).fetchone()
        started_at = None if row is None else row[0]
    due_at = now + int(change.after * MICROSECONDS)
    error = None if change.error is None else msgspec.json.encode(change.error)
    row = (
        yield Execute(
            SQL["give_back"],
            (
                item.task_id,
                item.attempt,
                item.worker_id,
                change.state.code,
                None if change.state is State.QUEUED else due_at,
                # A snoozed task starts over; a retry keeps its place in the queue.
                due_at if change.verb is Verb.SNOOZE else None,
                change.retry_count,
                change.returns,
                change.timeout,
                error,
                now,
            ),
        )
    ).fetchone()
    if row is None:
        return False
    lane, level = row
    ledger.add(
        change.verb,
        item.task_id,
        lane,
        level,
        item.attempt,
        State.EXECUTING.code,
        change.state.code,
        worker_id=item.worker_id,
        label=change.reason or "",
        seconds=item.seconds,
    )
    yield Execute(
        FINISH["record_attempt"],
        (item.task_id, item.attempt, item.worker_id, started_at, now, change.outcome, error),
    )
    if _lingers(item, reaping):
        yield Execute(FINISH["linger"], (item.worker_id, item.task_id, item.attempt, lane))
    return True


def _still_overdue(settlements: list[Settlement], now: int) -> Flow[list[Settlement]]:
    ids = json.dumps([item.task_id for item in settlements])
    rows = yield Execute(SQL["still_overdue"], (ids, now))
    overdue = set(rows)
    return [item for item in settlements if (item.task_id, item.attempt) in overdue]


def _verdicts(
    self: Context, late: list[Settlement], now: int, reaping: bool
) -> Flow[Iterator[Verdict]]:
    """What to say of settlements that did not match; their attempts let go of their slots."""
    if not reaping:
        for item in late:
            yield Execute(SQL["let_go"], (item.worker_id, item.task_id, item.attempt))
    tasks = yield from fetch(self, [item.task_id for item in late], now)
    return (verdict_on_late(tasks.get(item.task_id), item) for item in late)
