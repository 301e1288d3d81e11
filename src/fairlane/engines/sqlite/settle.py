"""settle: what became of executing tasks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from fairlane.core.flow import Flow, writes
from fairlane.core.ids import checked_all
from fairlane.core.machine import Settlement, Verb, verdict_on_late
from fairlane.core.model import Verdict
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import TERMINAL, State
from fairlane.core.tally import bucket_of
from fairlane.engines.files import statements
from fairlane.engines.sqlite.context import Context
from fairlane.engines.sqlite.driver import WAKE, Execute, ExecuteMany
from fairlane.engines.sqlite.inspect import fetch
from fairlane.engines.sqlite.ledger import Group, Ledger
from fairlane.engines.sqlite.moves import SQL as MOVES
from fairlane.engines.sqlite.moves import (
    End,
    Standing,
    encoded,
    end,
    enter_ready,
    enter_waiting,
    leave,
    linger,
    record_attempt,
    standing,
)
from fairlane.engines.sqlite.rows import Row

SQL = statements(__package__, "settle")

_EXECUTING, _COMPLETED = State.EXECUTING.code, State.COMPLETED.code
_ATTEMPT, _WORKER_ID = 4, 7  # in a row of those that settling looks at


@writes
def settle(
    self: Context, settlements: Sequence[Settlement], *, reaping: bool = False
) -> Flow[list[Verdict]]:
    checked_all([item.task_id for item in settlements])
    now = self.clock()
    held = yield from _held(settlements, now, reaping)
    ledger = Ledger()
    completions = Completions(now)
    late: list[Settlement] = []
    ready = False
    for item in settlements:
        row = held.get(item.task_id)
        if row is None or row[_ATTEMPT] != item.attempt or row[_WORKER_ID] != item.worker_id:
            late.append(item)
            continue
        del held[item.task_id]  # a second report of the same run is a late one
        if item.change.verb is Verb.COMPLETE:
            completions.add(item, row)
            continue
        (task,) = yield from standing([item.task_id])
        if item.change.state in TERMINAL:
            yield from end(task, _end(item, now, reaping), now, ledger)
        else:
            yield from _give_back(item, task, now, ledger, reaping)
            ready = ready or item.change.state is State.QUEUED
    yield from completions.write(ledger)
    yield from ledger.post(now)
    if ready:
        yield WAKE
    if not late:
        return [Verdict.APPLIED] * len(settlements)
    verdicts = yield from _verdicts(self, late, now, reaping)
    were_late = {id(item) for item in late}
    return [next(verdicts) if id(item) in were_late else Verdict.APPLIED for item in settlements]


def _held(settlements: Sequence[Settlement], now: int, reaping: bool) -> Flow[dict[str, Row]]:
    """Those of the tasks that are executing; for the reaper, those that still are overdue."""
    ids = json.dumps([item.task_id for item in settlements])
    if reaping:
        rows = yield Execute(SQL["still_overdue"], (ids, now))
    else:
        rows = yield Execute(SQL["held"], (ids,))
    return {row[0]: row for row in rows}


class Completions:
    """The common end, for all tasks of a batch at once. Rows are used as they came: it is the hot
    path, and every name costs."""

    def __init__(self, now: int) -> None:
        self._now = now
        self._rows: list[Row] = []
        self._groups: dict[tuple[int, int, int, str], Group] = {}

    def add(self, item: Settlement, row: Row) -> None:
        task_id, number, lane, level, attempt, retries, version, worker, claimed_at, started = row
        now, seconds = self._now, item.seconds
        started_at = started or 0 if seconds is None else now - int(seconds * MICROSECONDS)
        result = bytearray(item.change.result or b"null")
        self._rows.append(
            (number, attempt, retries, version + 1, worker, claimed_at, started_at, now, result)
        )
        key = (lane, level, bucket_of(seconds), worker)
        group = self._groups.get(key) or self._groups.setdefault(key, Group())
        group.task_ids.append(task_id)
        group.attempts.append(attempt)
        group.seconds.append(seconds)

    def write(self, ledger: Ledger) -> Flow[None]:
        if not self._rows:
            return
        yield ExecuteMany(SQL["complete"], self._rows)
        failed_before = [(row[0],) for row in self._rows if row[2]]
        if failed_before:
            yield ExecuteMany(SQL["forget_errors"], failed_before)
        for (lane, level, bucket, worker_id), group in self._groups.items():
            yield Execute(SQL["leave_held"], (json.dumps(group.task_ids),))
            ledger.mention(group.passage(Verb.COMPLETE, worker_id, lane, level))
            tally = (lane, level, _EXECUTING, _COMPLETED, "", bucket)
            spent = sum(seconds for seconds in group.seconds if seconds)
            ledger.count(tally, len(group.task_ids), spent)


def _end(item: Settlement, now: int, reaping: bool) -> End:
    change = item.change
    return End(
        verb=change.verb,
        state=change.state,
        reason=change.reason or "",
        error=change.error,
        outcome=change.outcome,
        retry_count=change.retry_count,
        started_at=_started_at(item, now),
        seconds=item.seconds,
        linger=_lingers(item, reaping),
    )


def _started_at(item: Settlement, now: int) -> int | None:
    return None if item.seconds is None else now - int(item.seconds * MICROSECONDS)


def _lingers(item: Settlement, reaping: bool) -> bool:
    """A live worker still runs what the maintenance declared timed out: its slot stays taken."""
    return reaping and item.change.outcome == "timed_out"


def _give_back(
    item: Settlement, task: Standing, now: int, ledger: Ledger, reaping: bool
) -> Flow[None]:
    """A task that will run again."""
    change = item.change
    error = encoded(change.error)
    yield from leave(task)
    if change.state is State.QUEUED:
        yield from enter_ready(
            task, now, level=task.level, ready_at=task.ready_at, retry_count=change.retry_count
        )
    else:
        due_at = now + int(change.after * MICROSECONDS)
        yield from enter_waiting(
            task, now, state=change.state, due_at=due_at, retry_count=change.retry_count
        )
        if change.verb is Verb.SNOOZE:
            # A snoozed task starts over, where a retry keeps its place in the queue.
            yield Execute(MOVES["note_place"], (task.level, due_at, task.number))
            yield Execute(MOVES["note_run_at"], (due_at, task.number))
    yield Execute(MOVES["note_run"], (change.returns, change.timeout, error, task.number))
    yield Execute(MOVES["expire_again"], (task.number,))
    ledger.add(
        change.verb,
        task.task_id,
        task.lane,
        task.level,
        task.attempt,
        _EXECUTING,
        change.state.code,
        worker_id=task.worker_id,
        label=change.reason or "",
        seconds=item.seconds,
    )
    started_at = _started_at(item, now) or task.started_at
    yield from record_attempt(task, started_at, now, change.outcome, error)
    if _lingers(item, reaping):
        yield from linger(task)


def _verdicts(
    self: Context, late: list[Settlement], now: int, reaping: bool
) -> Flow[Iterator[Verdict]]:
    """What to say of settlements that did not match; their attempts let go of their slots."""
    if not reaping:
        for item in late:
            yield Execute(SQL["let_go"], (item.worker_id, item.task_id, item.attempt))
    tasks = yield from fetch(self, [item.task_id for item in late], now)
    return (verdict_on_late(tasks.get(item.task_id), item) for item in late)
