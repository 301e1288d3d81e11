"""claim: tasks go to workers, by effective priority, then ready_at, then id."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter

from fairlane.core import limits
from fairlane.core.errors import WorkerGone
from fairlane.core.flow import Flow, writes
from fairlane.core.lanes import Lane, Opening
from fairlane.core.machine import DUE, EXPIRE, Place, sources_of
from fairlane.core.model import Ask, Claimed, Grant, WorkerStatus
from fairlane.core.priority import MICROSECONDS
from fairlane.core.records import claimed_of, stored_error
from fairlane.core.states import WAITING
from fairlane.engines.postgres.calls import BEGIN, COMMIT, SWEEP, WAKE, Query
from fairlane.engines.postgres.claim_limits import claim_within_limits
from fairlane.engines.postgres.claim_order import SQL, Reading, arms_of, choose_arms, statement
from fairlane.engines.postgres.context import Context, Known
from fairlane.engines.postgres.dependents import release_dependents, release_left_over
from fairlane.engines.postgres.moves import Ended
from fairlane.engines.postgres.rows import Header, Row

_PLACE = itemgetter(0)
_SWEEP_EVERY = 20_000
_LOCKED_SECONDS = 0.05
"""When to look again for due tasks that another transaction has locked."""


@writes
def claim(self: Context, ask: Ask) -> Flow[Grant]:
    tidied = more = backlog = False
    while True:
        known = self.catalogue.known
        opening = known.opening(ask)
        if opening.quotas or opening.rate:
            reply, token_in = yield from claim_within_limits(self, known, ask, opening, tidied)
        else:
            reply, token_in = (yield from _claim_freely(self, known, ask, opening, tidied)), None
        header, rows = _header_and_tasks(reply)
        if header.status is None or header.status == WorkerStatus.DEAD:
            raise WorkerGone
        if ask.overlooks(header.request_id):
            return (yield from _grant_again(self, ask, header))
        if header.version != known.version:
            yield from self.catalogue.load()
        elif header.has_chores and not tidied:
            tidied = True
            if header.due:
                backlog = yield from _release_due()
            if header.expired and (yield from _expire()):
                return Grant([], next_due_in=0.0)
            if header.left_over:
                more = yield from _release_left_over()
        else:
            break
    self.claimed += len(rows)
    if self.claimed >= _SWEEP_EVERY:
        self.claimed = 0
        yield SWEEP
    waits = [] if token_in is None else [token_in]
    if more and not rows:
        waits.append(0.0)
    if header.due_at is not None:
        soonest = _LOCKED_SECONDS if header.due and tidied and not backlog else 0.0
        waits.append(max(soonest, (header.due_at - header.now) / MICROSECONDS))
    return Grant([_claimed(known.lanes, ask, row) for row in rows], min(waits, default=None))


def _claim_freely(
    self: Context, known: Known, ask: Ask, opening: Opening, tidied: bool
) -> Flow[list[Row]]:
    """Claim in one statement: nothing is limited."""
    most = min(ask.slots + ask.ahead, limits.BATCH)
    arms = arms_of(opening.free, known.levels, self.aging)
    arms = yield from choose_arms(arms, most)
    reading = Reading([arms])
    (shape,) = reading.shapes
    basics = (ask.worker_id, ask.request_id, known.version, most, tidied, ask.heard)
    rows: list[Row] = yield Query(statement(shape), (*basics, *reading.columns))
    return rows


def _header_and_tasks(reply: list[Row]) -> tuple[Header, list[Row]]:
    """Return the header of a claim's reply, and the rows of its tasks in order."""
    rows = sorted(reply, key=_PLACE)
    return Header.of(rows), rows[1:]


def _release_due() -> Flow[bool]:
    """Queue tasks that are due. Return whether there may be more than fit a batch."""
    assert DUE.place is Place.KEEP, DUE  # the statement writes it out
    ((released,),) = yield Query(SQL["release_due"], (limits.BATCH, DUE.verb.value))
    return bool(released == limits.BATCH)


def _expire() -> Flow[bool]:
    """End tasks that have expired. Return whether there may be more than fit a batch."""
    assert sources_of(EXPIRE.verb) == WAITING, EXPIRE  # where the statement looks for them
    values = (stored_error(EXPIRE.error), EXPIRE.label, EXPIRE.verb.value, EXPIRE.state.code)
    yield BEGIN
    rows = yield Query(SQL["expire"], (limits.BATCH, *values))
    ended = [
        Ended(task_id, EXPIRE.state, bound) for task_id, linked, bound in rows if linked or bound
    ]
    released = yield from release_dependents(ended)
    yield COMMIT
    if released:
        yield WAKE
    return len(rows) == limits.BATCH


def _release_left_over() -> Flow[bool]:
    """Release dependents that are left over. Return whether there may be more than fit a batch."""
    resolved = yield from release_left_over()
    if resolved.released:
        yield WAKE
    return resolved.more


def _grant_again(self: Context, ask: Ask, header: Header) -> Flow[Grant]:
    """Return the tasks of the worker's last request, whose reply got lost, that it still holds."""
    rows = yield Query(SQL["granted"], (ask.worker_id, header.claimed_at))

    def rank(row: Row) -> tuple[int, int, str]:
        task_id, level, ready_at = row[1], row[4], row[11]
        return (-self.aging.effective(level, header.now - ready_at), ready_at, task_id)

    lanes = {}
    for lane_id in {row[3] for row in rows}:
        lanes[lane_id] = yield from self.catalogue.lane(lane_id)
    tasks = [_claimed(lanes, ask, row) for row in sorted(rows, key=rank)]
    return Grant(tasks, request_id=header.request_id or "")


def _claimed(lanes: Mapping[int, Lane], ask: Ask, row: Row) -> Claimed:
    return claimed_of(row[1:13], lanes.__getitem__, ask.worker_id)
