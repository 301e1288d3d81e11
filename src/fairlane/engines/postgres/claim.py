"""claim: tasks go to workers, by effective priority, then ready_at, then id."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter

from fairlane.core import limits
from fairlane.core.errors import WorkerGone
from fairlane.core.flow import Flow, writes
from fairlane.core.lanes import Lane, Opening, retimed
from fairlane.core.model import Ask, Claimed, Grant, WorkerStatus
from fairlane.core.priority import MICROSECONDS
from fairlane.core.records import claimed_of
from fairlane.engines.postgres.calls import SWEEP, Query
from fairlane.engines.postgres.claim_limits import claim_within_limits
from fairlane.engines.postgres.claim_order import (
    SQL,
    Reading,
    Section,
    arms_of,
    choose_arms,
    statement,
)
from fairlane.engines.postgres.context import Context, Known
from fairlane.engines.postgres.due import Choice, Chores, Done, do_chores
from fairlane.engines.postgres.rows import Header, Row, array, array_of_ids

_PLACE = itemgetter(0)
_SWEEP_EVERY = 20_000
_LATER_SECONDS = 0.05
"""When to look again while tasks are due that another transaction has locked, or that this worker
may not take."""


@writes
def claim(self: Context, ask: Ask) -> Flow[Grant]:
    done: Done | None = None
    while True:
        known = self.catalogue.known
        opening = known.opening(ask)
        if opening.quotas or opening.rate:
            reply, sections, token_in = yield from claim_within_limits(
                self, known, ask, opening, done is not None
            )
        else:
            sections, token_in = [(opening.free, min(ask.slots + ask.ahead, limits.BATCH))], None
            reply = yield from _claim_freely(known, ask, opening, sections, done is not None)
        header, rows = _header_and_tasks(reply)
        if header.status is None or header.status == WorkerStatus.DEAD:
            raise WorkerGone
        if ask.overlooks(header.request_id):
            return (yield from _grant_again(self, ask, header))
        if header.version != known.version:
            yield from self.catalogue.load()
        elif header.has_chores and done is None:
            chores = Chores(header.due, header.expired, bool(header.left_over))
            done = yield from do_chores(chores, _choice(known, ask, sections))
            if done.more_expired:
                return Grant([], next_due_in=0.0)
        else:
            break
    self.claimed += len(rows)
    if self.claimed >= _SWEEP_EVERY:
        self.claimed = 0
        yield SWEEP
    waits = [] if token_in is None else [token_in]
    if done is not None and done.more_dependents and not rows:
        waits.append(0.0)
    if header.due_at is not None:
        soonest = _LATER_SECONDS if header.due and not (done and done.more_due) else 0.0
        waits.append(max(soonest, (header.due_at - header.now) / MICROSECONDS))
    tasks = yield from _timed(known, _claimed(known.lanes, ask, rows))
    return Grant(tasks, min(waits, default=None))


def _claim_freely(
    known: Known, ask: Ask, opening: Opening, sections: list[Section], tidied: bool
) -> Flow[list[Row]]:
    """Claim in one statement: nothing is limited."""
    reading = Reading((yield from choose_arms(known, opening, sections)))
    (shape,) = reading.shapes
    ((_, most),) = sections
    basics = (ask.worker_id, ask.request_id, known.version, most, tidied, ask.heard)
    rows: list[Row] = yield Query(statement(shape), (*basics, *reading.columns))
    return rows


def _choice(known: Known, ask: Ask, sections: list[Section]) -> Choice:
    """Return the due tasks that this claim may take."""
    lanes = [lane for lanes, _ in sections for lane in lanes]
    _, *limited = sections
    return Choice(
        arms_of(lanes, known.levels, known.aging),
        max(most for _, most in sections),
        ask.slots,
        [(lane, n, most) for n, (lanes, most) in enumerate(limited) for lane in lanes],
    )


def _header_and_tasks(reply: list[Row]) -> tuple[Header, list[Row]]:
    """Return the header of a claim's reply, and the rows of its tasks in order."""
    rows = sorted(reply, key=_PLACE)
    return Header.of(rows), rows[1:]


def _grant_again(self: Context, ask: Ask, header: Header) -> Flow[Grant]:
    """Return the tasks of the worker's last request, whose reply got lost, that it still holds."""
    rows = yield Query(SQL["granted"], (ask.worker_id, header.claimed_at))
    aging = self.catalogue.known.aging

    def rank(row: Row) -> tuple[int, int, str]:
        task_id, level, ready_at = row[1], row[4], row[11]
        return (-aging.effective(level, header.now - ready_at), ready_at, task_id)

    lanes = {}
    for lane_id in {row[3] for row in rows}:
        lane = yield from self.catalogue.lane(lane_id)
        assert lane is not None, "a lane with tasks is not dropped"
        lanes[lane_id] = lane
    tasks = _claimed(lanes, ask, sorted(rows, key=rank))
    return Grant(tasks, request_id=header.request_id or "")


def _claimed(lanes: Mapping[int, Lane], ask: Ask, rows: list[Row]) -> list[Claimed]:
    return [claimed_of(row[1:13], lanes.__getitem__, ask.worker_id) for row in rows]


def _timed(known: Known, tasks: list[Claimed]) -> Flow[list[Claimed]]:
    """Return the tasks. Those that get the timeout of their type keep it.

    If the connection is lost before this, they keep the timeout that they had.
    """
    changed = retimed(tasks, known.timeouts) if known.timeouts else {}
    if changed:
        timeouts = array(task.timeout for task in changed.values())
        yield Query(SQL["set_timeouts"], (array_of_ids(list(changed)), timeouts))
        tasks = [changed.get(task.task_id, task) for task in tasks]
    return tasks
