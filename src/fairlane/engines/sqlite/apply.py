"""apply: executing tasks move, each under its fence."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairlane.core import encryption
from fairlane.core.flow import Flow, writes
from fairlane.core.ids import checked_all
from fairlane.core.machine import Verb
from fairlane.core.model import Verdict
from fairlane.core.priority import MICROSECONDS
from fairlane.core.settlement import FencedMove, judge_late
from fairlane.core.states import State
from fairlane.core.tally import STALE_RESULTS, apart, bucket_of
from fairlane.engines.compression.results import expanded
from fairlane.engines.files import statements
from fairlane.engines.sqlite import circuits, dependents
from fairlane.engines.sqlite.accounting import Accounts, Group
from fairlane.engines.sqlite.calls import WAKE, Execute, ExecuteMany
from fairlane.engines.sqlite.context import Context
from fairlane.engines.sqlite.documents import refuse_plain
from fairlane.engines.sqlite.inspect import fetch
from fairlane.engines.sqlite.moves import apply_move, standing
from fairlane.engines.sqlite.rows import Row

SQL = statements(__package__, "apply")

_COMPLETE = Verb.COMPLETE  # looking it up in its class takes long for the hot path
_EXECUTING, _COMPLETED = State.EXECUTING.code, State.COMPLETED.code
_LANE, _ATTEMPT, _WORKER_ID = 2, 4, 7  # in a row of `held`
_STRANGERS = 64


@writes
def apply(self: Context, moves: Sequence[FencedMove], *, reaping: bool) -> Flow[list[Verdict]]:
    checked_all([item.task_id for item in moves])
    if encryption.has_plain_result(item.result for item in moves):
        yield from refuse_plain()
    now = self.clock()
    held, range_read = yield from _held(moves, now, reaping)
    concern = yield from dependents.concerns()
    runs = circuits.Runs() if concern.breakers else None
    accounts = Accounts()
    completions: list[tuple[FencedMove, Row]] = []
    late: dict[int, FencedMove] = {}
    lanes: set[int] = set()
    ready = False
    for position, item in enumerate(moves):
        row = held.get(item.task_id)
        if row is None or row[_ATTEMPT] != item.attempt or row[_WORKER_ID] != item.worker_id:
            late[position] = item
            continue
        del held[item.task_id]  # a second report of the same run is a late one
        lanes.add(row[_LANE])
        if runs is not None:
            runs.add(row[_LANE], item.move)
        if item.move.verb is _COMPLETE:
            completions.append((item, row))
            continue
        (task,) = yield from standing([item.task_id])
        yield from apply_move(task, item.move, now, accounts, seconds=item.seconds)
        ready = ready or item.move.wakes
    # Rows that are left belong to others: do they lie between ours?
    among_strangers = bool(held) or not range_read
    yield from _complete(completions, now, accounts, among_strangers)
    if accounts.ended and (concern.bonds or concern.keys):
        yield from dependents.release_dependents(accounts, now, concern)
    verdicts = [Verdict.APPLIED] * len(moves)
    if late:
        judged = yield from _judge(self, list(late.values()), now, reaping, accounts)
        for position, verdict in zip(late, judged, strict=True):
            verdicts[position] = verdict
    yield from accounts.post(now)
    slotted = self.catalogue.slotted
    # A worker may wait for a slot that is free now; late reports may free some, too.
    if ready or not slotted.isdisjoint(lanes) or (slotted and late):
        yield WAKE
    if runs is not None:
        yield from circuits.count_runs(self, runs, now)
    return verdicts


def _held(
    moves: Sequence[FencedMove], now: int, reaping: bool
) -> Flow[tuple[dict[str, Row], bool]]:
    """Return those of the tasks that are executing; for the reaper, those that still are overdue.

    True: these are all that is executing between the first and the last of them.
    """
    ids = [item.task_id for item in moves]
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
    completions: list[tuple[FencedMove, Row]], now: int, accounts: Accounts, among_strangers: bool
) -> Flow[None]:
    """Complete all tasks of a batch at once. Rows are used as they came: it is
    the hot path, and every name costs."""
    if not completions:
        return
    outcomes: list[Row] = []
    groups: dict[tuple[int, int, int, str], Group] = {}
    for item, row in completions:
        task_id, number, lane, level, attempt, retries, version, worker, claimed_at, started = row
        seconds = item.seconds
        started_at = started or 0 if seconds is None else now - int(seconds * MICROSECONDS)
        result = bytearray(item.result or b"null")
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
    accounts.ends(State.COMPLETED, task_ids)
    for (lane, level, bucket, worker_id), group in groups.items():
        accounts.mention(group.passage(_COMPLETE, worker_id, lane, level))
        tally = (lane, level, _EXECUTING, _COMPLETED, "", bucket)
        spent = sum(seconds for seconds in group.seconds if seconds)
        accounts.count(tally, len(group.task_ids), spent)


def _json(task_ids: list[str]) -> str:
    # Ten times faster than `json`, which at these lengths is felt.
    return msgspec.json.encode(task_ids).decode()


def _judge(
    self: Context, late: list[FencedMove], now: int, reaping: bool, accounts: Accounts
) -> Flow[list[Verdict]]:
    """Judge moves whose fence did not match. Their attempts free their slots."""
    if not reaping:
        for item in late:
            yield Execute(SQL["let_go"], (item.worker_id, item.task_id, item.attempt))
    tasks = yield from fetch(self, [item.task_id for item in late], now)
    verdicts = [judge_late(expanded(tasks.get(item.task_id)), item) for item in late]
    stale = verdicts.count(Verdict.STALE)
    if stale and not reaping:
        accounts.count(apart(STALE_RESULTS), stale)
    return verdicts
