"""settle: what became of executing tasks."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairlane.core.flow import Flow, writes
from fairlane.core.ids import checked_all
from fairlane.core.machine import Settlement, Verb, verdict_on_late
from fairlane.core.model import Verdict
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import TERMINAL, State
from fairlane.core.tally import STALE_RESULTS, apart, bucket_of
from fairlane.engines.files import statements
from fairlane.engines.sqlite import circuits, ends
from fairlane.engines.sqlite.calls import WAKE, Execute, ExecuteMany
from fairlane.engines.sqlite.context import Context
from fairlane.engines.sqlite.inspect import fetch
from fairlane.engines.sqlite.ledger import Group, Ledger
from fairlane.engines.sqlite.moves import SQL as MOVES
from fairlane.engines.sqlite.moves import (
    End,
    TaskRow,
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
_LANE, _ATTEMPT, _WORKER_ID = 2, 4, 7  # in a row of those that settling looks at
_STRANGERS = 64


@writes
def settle(
    self: Context, settlements: Sequence[Settlement], *, reaping: bool = False
) -> Flow[list[Verdict]]:
    checked_all([item.task_id for item in settlements])
    now = self.clock()
    held, range_read = yield from _held(settlements, now, reaping)
    concern = yield from ends.concerns()
    runs = circuits.Runs() if concern.breakers else None
    ledger = Ledger()
    completions: list[tuple[Settlement, Row]] = []
    late: dict[int, Settlement] = {}
    lanes: set[int] = set()
    ready = False
    for position, item in enumerate(settlements):
        row = held.get(item.task_id)
        if row is None or row[_ATTEMPT] != item.attempt or row[_WORKER_ID] != item.worker_id:
            late[position] = item
            continue
        del held[item.task_id]  # a second report of the same run is a late one
        lanes.add(row[_LANE])
        if runs is not None:
            runs.add(row[_LANE], item.change)
        if item.change.verb is Verb.COMPLETE:
            completions.append((item, row))
            continue
        (task,) = yield from standing([item.task_id])
        if item.change.state in TERMINAL:
            yield from end(task, _end(item, now, reaping), now, ledger)
        else:
            yield from _give_back(item, task, now, ledger, reaping)
            ready = ready or item.change.state is State.QUEUED
    # What is left was not ours to settle: does it lie among what was?
    among_strangers = bool(held) or not range_read
    yield from _complete(completions, now, ledger, among_strangers)
    if ledger.ended and (concern.bonds or concern.keys):
        yield from ends.see_to(ledger, now, concern)
    verdicts = [Verdict.APPLIED] * len(settlements)
    if late:
        told = yield from _verdicts(self, list(late.values()), now, reaping, ledger)
        for position, verdict in zip(late, told, strict=True):
            verdicts[position] = verdict
    yield from ledger.post(now)
    slotted = self.catalogue.slotted
    # Where there are slots, somebody may have waited for one; late reports may free some, too.
    if ready or not slotted.isdisjoint(lanes) or (slotted and late):
        yield WAKE
    if runs is not None:
        yield from circuits.judge(self, runs, now)
    return verdicts


def _held(
    settlements: Sequence[Settlement], now: int, reaping: bool
) -> Flow[tuple[dict[str, Row], bool]]:
    """Those of the tasks that are executing; for the reaper, those that still are overdue.

    True: these are all that is executing between the first and the last of them.
    """
    ids = [item.task_id for item in settlements]
    if reaping:
        rows = yield Execute(SQL["still_overdue"], (_json(ids), now))
        return {row[0]: row for row in rows}, False
    if not ids:
        return {}, False
    # What was claimed together lies together: reading all of a range is quicker than looking up
    # each, unless there is much else in it.
    most = len(ids) + _STRANGERS
    rows = (yield Execute(SQL["held_range"], (min(ids), max(ids), most))).fetchall()
    whole = len(rows) < most
    if not whole:
        rows = yield Execute(SQL["held"], (_json(ids),))
    return {row[0]: row for row in rows}, whole


def _complete(
    completions: list[tuple[Settlement, Row]], now: int, ledger: Ledger, among_strangers: bool
) -> Flow[None]:
    """The common end, for all tasks of a batch at once. Rows are used as they came: it is the hot
    path, and every name costs."""
    if not completions:
        return
    outcomes: list[Row] = []
    groups: dict[tuple[int, int, int, str], Group] = {}
    for item, row in completions:
        task_id, number, lane, level, attempt, retries, version, worker, claimed_at, started = row
        seconds = item.seconds
        started_at = started or 0 if seconds is None else now - int(seconds * MICROSECONDS)
        result = bytearray(item.change.result or b"null")
        outcomes.append(
            (number, attempt, retries, version + 1, worker, claimed_at, started_at, now, result)
        )
        key = (lane, level, bucket_of(seconds), worker)
        group = groups.get(key) or groups.setdefault(key, Group())
        group.task_ids.append(task_id)
        group.attempts.append(attempt)
        group.seconds.append(seconds)
    yield ExecuteMany(SQL["complete"], outcomes)
    task_ids = [row[0] for _, row in completions]
    if among_strangers:
        yield Execute(SQL["leave_held"], (_json(task_ids),))
    else:
        yield Execute(SQL["leave_held_range"], (min(task_ids), max(task_ids)))
    run_before = [(row[0],) for row in outcomes if row[1] > 1]
    if run_before:
        yield ExecuteMany(SQL["forget_errors"], run_before)
    ledger.ends(State.COMPLETED, task_ids)
    for (lane, level, bucket, worker_id), group in groups.items():
        ledger.mention(group.passage(Verb.COMPLETE, worker_id, lane, level))
        tally = (lane, level, _EXECUTING, _COMPLETED, "", bucket)
        spent = sum(seconds for seconds in group.seconds if seconds)
        ledger.count(tally, len(group.task_ids), spent)


def _json(task_ids: list[str]) -> str:
    # Ten times faster than `json`, which at these lengths is felt.
    return msgspec.json.encode(task_ids).decode()


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
    item: Settlement, task: TaskRow, now: int, ledger: Ledger, reaping: bool
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
    self: Context, late: list[Settlement], now: int, reaping: bool, ledger: Ledger
) -> Flow[list[Verdict]]:
    """What to say of settlements that did not match; their attempts let go of their slots."""
    if not reaping:
        for item in late:
            yield Execute(SQL["let_go"], (item.worker_id, item.task_id, item.attempt))
    tasks = yield from fetch(self, [item.task_id for item in late], now)
    verdicts = [verdict_on_late(tasks.get(item.task_id), item) for item in late]
    stale = verdicts.count(Verdict.STALE)
    if stale and not reaping:
        ledger.count(apart(STALE_RESULTS), stale)
    return verdicts
