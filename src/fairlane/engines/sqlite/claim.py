"""claim: tasks go to workers, by effective priority, then ready_at, then id."""

from __future__ import annotations

from fairlane.core import limits
from fairlane.core.errors import WorkerGone
from fairlane.core.flow import Flow, writes
from fairlane.core.lanes import Opening, retimed
from fairlane.core.machine import Verb
from fairlane.core.model import Ask, Claimed, Grant, WorkerStatus
from fairlane.core.records import claimed_of
from fairlane.core.states import State
from fairlane.core.tally import waits_of
from fairlane.engines.files import statements
from fairlane.engines.sqlite.accounting import Accounts, Group
from fairlane.engines.sqlite.calls import Execute, ExecuteMany
from fairlane.engines.sqlite.claim_limits import Allowances, allowances, pick_within_limits
from fairlane.engines.sqlite.claim_order import Stream, merge, streams_of
from fairlane.engines.sqlite.context import Context
from fairlane.engines.sqlite.due import Choice, Chores, do_chores
from fairlane.engines.sqlite.rows import Row

SQL = statements(__package__, "claim")

_QUEUED, _EXECUTING = State.QUEUED.code, State.EXECUTING.code


@writes
def claim(self: Context, ask: Ask) -> Flow[Grant]:
    now = self.clock()
    (situation,) = yield Execute(SQL["situation"], (ask.worker_id,))
    version, status, request_id, claimed_at, seen_at, lease, *chores = situation
    if status is None or status == WorkerStatus.DEAD:
        raise WorkerGone
    yield from self.catalogue.refresh(version)
    if ask.overlooks(request_id):
        rows = yield Execute(SQL["granted"], (ask.worker_id, claimed_at))
        tasks = _claimed(self, ask, _in_order(self, rows.fetchall(), now))
        return Grant(tasks, request_id=request_id or "")
    accounts = Accounts()
    opening = self.catalogue.opening(ask)
    allowed = yield from allowances(self, opening, ask, now)
    choice = Choice(opening.lanes, {} if allowed is None else allowed.by_lane())
    done = yield from do_chores(self, Chores._make(chores), choice, now, accounts)
    yield from accounts.post_depths()
    rows, token_in = [], None
    if status == WorkerStatus.ACTIVE and not done.more_expired:
        rows = yield from _take(self, ask, opening, allowed, now)
        token_in = allowed and allowed.opens_in
    _enter(self, accounts, ask, rows, now)
    # An idle worker's claims write nothing, or it would wake itself and others for nothing.
    if rows or now - seen_at > lease // 3:
        granted_at = now if rows else claimed_at
        request = ask.request_id if rows else request_id
        yield Execute(SQL["seen"], (now, request, granted_at, ask.worker_id))
    yield from accounts.post(now)
    at_once = done.more_due or done.more_expired or (done.more_dependents and not rows)
    waits = [0.0 if at_once else None, token_in, done.next_in(now)]
    wait = min((each for each in waits if each is not None), default=None)
    tasks = yield from _timed(self, _claimed(self, ask, rows))
    return Grant(tasks, wait)


def _take(
    self: Context, ask: Ask, opening: Opening, allowed: Allowances | None, now: int
) -> Flow[list[Row]]:
    """Return the rows of the claimed tasks in order."""
    most = min(ask.slots + ask.ahead, limits.BATCH)
    streams = yield from streams_of(self, opening, most, now)
    if allowed is not None:
        picked = yield from pick_within_limits(self, allowed, streams, now)
    elif len(streams) == 1:
        picked = {streams[0]: most}
    else:
        picked = yield from merge(self, streams, now, {}, most)
    rows: list[Row] = []
    for stream, count in picked.items():
        rows += yield from _take_stream(ask, stream, count, now)
    return rows if len(picked) == 1 else _in_order(self, rows, now)


def _take_stream(ask: Ask, stream: Stream, count: int, now: int) -> Flow[list[Row]]:
    """Hand the first tasks of a stream to the worker."""
    yield Execute(SQL["hold"], (ask.worker_id, now, *stream, count))
    rows: list[Row] = (yield Execute(SQL["take"], (*stream, count))).fetchall()
    if rows:
        yield Execute(SQL["leave"], (*stream, rows[-1][10], rows[-1][0]))
    return rows


def _in_order(self: Context, rows: list[Row], now: int) -> list[Row]:
    """Return rows as a claim orders them."""

    def rank(row: Row) -> tuple[int, int, str]:
        task_id, _, _, level, *_, ready_at, _ = row
        return (-self.catalogue.aging.effective(level, now - ready_at), ready_at, task_id)

    return sorted(rows, key=rank)


def _enter(self: Context, accounts: Accounts, ask: Ask, rows: list[Row], now: int) -> None:
    groups: dict[tuple[int, int, str], tuple[Group, list[int]]] = {}
    young = now - self.catalogue.aging.youth
    for row in rows:
        task_id, attempt, lane, level = row[:4]
        at = row[10]
        label = "" if at > young else self.catalogue.aging.raised_to(level, now - at)
        key = (lane, level, label)
        group, ready_at = groups.get(key) or groups.setdefault(key, (Group(), []))
        group.task_ids.append(task_id)
        group.attempts.append(attempt)
        ready_at.append(at)
    for (lane, level, label), (group, ready_at) in groups.items():
        accounts.mention(group.passage(Verb.CLAIM, ask.worker_id, lane, level))
        for bucket, times, seconds in waits_of(ready_at, now):
            accounts.count((lane, level, _QUEUED, _EXECUTING, label, bucket), times, seconds)


def _claimed(self: Context, ask: Ask, rows: list[Row]) -> list[Claimed]:
    lane_of = self.catalogue.lane
    return [claimed_of(row, lane_of, ask.worker_id) for row in rows]


def _timed(self: Context, tasks: list[Claimed]) -> Flow[list[Claimed]]:
    """Return the tasks. Those that get the timeout of their type keep it."""
    timeouts = self.catalogue.timeouts
    changed = retimed(tasks, timeouts) if timeouts else {}
    if changed:
        values = [(task.timeout, task.task_id) for task in changed.values()]
        yield ExecuteMany(SQL["set_timeout"], values)
        tasks = [changed.get(task.task_id, task) for task in tasks]
    return tasks
