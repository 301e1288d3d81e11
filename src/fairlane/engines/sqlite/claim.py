"""claim: tasks go to workers, by effective priority, then ready_at, then id."""

from __future__ import annotations

from fairlane.core import limits
from fairlane.core.errors import WorkerGone
from fairlane.core.flow import Flow, writes
from fairlane.core.machine import DUE, EXPIRE, Verb, allows
from fairlane.core.model import Ask, Claimed, Grant, WorkerStatus
from fairlane.core.priority import MICROSECONDS
from fairlane.core.records import claimed_of
from fairlane.core.states import State
from fairlane.core.tally import UNTIMED
from fairlane.engines.files import statements
from fairlane.engines.sqlite import dependents
from fairlane.engines.sqlite.accounting import Accounts, Group
from fairlane.engines.sqlite.calls import Execute
from fairlane.engines.sqlite.claim_limits import pick_within_limits
from fairlane.engines.sqlite.claim_order import Stream, merge
from fairlane.engines.sqlite.context import Context
from fairlane.engines.sqlite.moves import TaskRow, apply_move, standing_by_number
from fairlane.engines.sqlite.rows import Row

SQL = statements(__package__, "claim")

_QUEUED, _EXECUTING = State.QUEUED.code, State.EXECUTING.code


@writes
def claim(self: Context, ask: Ask) -> Flow[Grant]:
    now = self.clock()
    (situation,) = yield Execute(SQL["situation"], (ask.worker_id,))
    version, due_at, expires_at, unresolved, *worker = situation
    status, request_id, claimed_at, seen_at, lease = worker
    if status is None or status == WorkerStatus.DEAD:
        raise WorkerGone
    yield from self.catalogue.refresh(version)
    if ask.overlooks(request_id):
        rows = yield Execute(SQL["granted"], (ask.worker_id, claimed_at))
        tasks = [_claimed(self, ask, row) for row in _in_order(self, rows.fetchall(), now)]
        return Grant(tasks, request_id=request_id or "")
    accounts = Accounts()
    if due_at is not None and due_at <= now:
        due_at = yield from _release_due(now, accounts)
    more_to_expire = False
    if expires_at is not None and expires_at <= now:
        more_to_expire = yield from _expire(now, accounts)
    left = False
    if unresolved or accounts.ended:
        left = yield from dependents.release_dependents(accounts, now)
    yield from accounts.post_depths()
    rows, token_in = [], None
    if status == WorkerStatus.ACTIVE and not more_to_expire:
        rows, token_in = yield from _take(self, ask, now)
    _enter(self, accounts, ask, rows, now)
    # An idle worker's claims write nothing, or it would wake itself and others for nothing.
    if rows or now - seen_at > lease // 3:
        granted_at = now if rows else claimed_at
        request = ask.request_id if rows else request_id
        yield Execute(SQL["seen"], (now, request, granted_at, ask.worker_id))
    yield from accounts.post(now)
    waits = [] if token_in is None else [token_in]
    if more_to_expire or (left and not rows):
        waits.append(0.0)
    if due_at is not None:
        waits.append(max(0, due_at - now) / MICROSECONDS)
    return Grant([_claimed(self, ask, row) for row in rows], min(waits, default=None))


def _release_due(now: int, accounts: Accounts) -> Flow[int | None]:
    """Make tasks ready whose time has come; answers when the next one is due."""
    due = (yield Execute(SQL["due"], (now, limits.BATCH))).fetchall()
    for task in map(TaskRow._make, due):
        yield from apply_move(task, DUE, now, accounts)
    ((due_at,),) = yield Execute(SQL["next_due"])
    return None if due_at is None else int(due_at)


def _expire(now: int, accounts: Accounts) -> Flow[bool]:
    """End tasks whose time is over; True when there may be more of them than fit a batch."""
    expiring = (yield Execute(SQL["expiring"], (now, limits.BATCH))).fetchall()
    for entry in expiring:
        yield Execute(SQL["drop_expiry"], entry)
        task = yield from standing_by_number(entry[1])
        if task is not None and allows(Verb.EXPIRE, State.of(task.state)):
            yield from apply_move(task, EXPIRE, now, accounts)
    return len(expiring) == limits.BATCH


def _take(self: Context, ask: Ask, now: int) -> Flow[tuple[list[Row], float | None]]:
    """Return the rows of the claimed tasks in order, and when a limit may let more through."""
    opening = self.catalogue.opening(ask)
    lanes = set(opening.lanes)
    streams = [stream for stream in (yield Execute(SQL["streams"])) if stream[0] in lanes]
    most = min(ask.slots + ask.ahead, limits.BATCH)
    token_in = None
    if opening.quotas or opening.rate:
        picked, token_in = yield from pick_within_limits(self, opening, streams, ask, now)
    elif len(streams) == 1:
        picked = {streams[0]: most}
    else:
        picked = yield from merge(self, streams, now, {}, most)
    rows: list[Row] = []
    for stream, count in picked.items():
        rows += yield from _take_stream(ask, stream, count, now)
    return rows if len(picked) == 1 else _in_order(self, rows, now), token_in


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
        return (-self.aging.effective(level, now - ready_at), ready_at, task_id)

    return sorted(rows, key=rank)


def _enter(self: Context, accounts: Accounts, ask: Ask, rows: list[Row], now: int) -> None:
    groups: dict[tuple[int, int, str], Group] = {}
    young = now - self.aging.youth
    for row in rows:
        task_id, attempt, lane, level = row[:4]
        label = "" if row[10] > young else self.aging.raised_to(level, now - row[10])
        key = (lane, level, label)
        group = groups.get(key) or groups.setdefault(key, Group())
        group.task_ids.append(task_id)
        group.attempts.append(attempt)
    for (lane, level, label), group in groups.items():
        accounts.mention(group.passage(Verb.CLAIM, ask.worker_id, lane, level))
        accounts.count((lane, level, _QUEUED, _EXECUTING, label, UNTIMED), len(group.task_ids))


def _claimed(self: Context, ask: Ask, row: Row) -> Claimed:
    return claimed_of(row, self.catalogue.lane, ask.worker_id)
