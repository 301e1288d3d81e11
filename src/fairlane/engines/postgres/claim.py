"""claim: tasks go to workers, by effective priority, then ready_at, then id."""

from __future__ import annotations

from operator import itemgetter

import msgspec

from fairlane.core import limits
from fairlane.core.errors import WorkerGone
from fairlane.core.flow import Flow, writes
from fairlane.core.lanes import Opening
from fairlane.core.machine import EXPIRED
from fairlane.core.model import PLAIN, Ask, Claimed, Grant, Spec, TaskError, WorkerStatus
from fairlane.core.priority import MICROSECONDS
from fairlane.engines.postgres.calls import SWEEP, Query
from fairlane.engines.postgres.context import Context
from fairlane.engines.postgres.merge import SQL, Reading, arms_of, occupied, statement
from fairlane.engines.postgres.quotas import claim_within_limits
from fairlane.engines.postgres.rows import Header, Row

_EXPIRED = msgspec.json.encode(
    TaskError("The task expired before it could run.", "EXPIRED", retriable=False, reason=EXPIRED)
)
_PLACE = itemgetter(0)
_SWEEP_EVERY = 20_000


@writes
def claim(self: Context, ask: Ask) -> Flow[Grant]:
    tidied = False
    while True:
        known = self.catalogue.known
        opening = known.opening(ask)
        if opening.quotas or opening.rate:
            reply, token_in = yield from claim_within_limits(self, ask, opening, tidied)
        else:
            reply, token_in = (yield from _claim_freely(self, ask, opening, tidied)), None
        header, rows = _divided(reply)
        if header.status is None or header.status == WorkerStatus.DEAD:
            raise WorkerGone
        if header.request_id == ask.request_id:
            return (yield from _granted(self, ask, header))
        if header.version != known.version:
            yield from self.catalogue.load()
        elif header.untidy and not tidied:
            if (yield from _tidy()):
                return Grant([], next_due_in=0.0)
            tidied = True
        else:
            break
    self.claimed += len(rows)
    if self.claimed >= _SWEEP_EVERY:
        self.claimed = 0
        yield SWEEP
    waits = [] if token_in is None else [token_in]
    if header.due_at is not None:
        waits.append(max(0, header.due_at - header.now) / MICROSECONDS)
    return Grant([_claimed(self, ask, row) for row in rows], min(waits, default=None))


def _claim_freely(self: Context, ask: Ask, opening: Opening, tidied: bool) -> Flow[list[Row]]:
    """The common way: one statement."""
    most = min(ask.slots + ask.ahead, limits.BATCH)
    known = self.catalogue.known
    arms = arms_of(opening.free, known.levels, self.aging)
    arms = yield from occupied(arms, most)
    reading = Reading([arms])
    (shape,) = reading.shapes
    basics = (ask.worker_id, ask.request_id, known.version, most, tidied)
    rows: list[Row] = yield Query(statement(shape), (*basics, *reading.columns))
    return rows


def _divided(reply: list[Row]) -> tuple[Header, list[Row]]:
    """A claim's reply: about the worker, and the tasks in order."""
    rows = sorted(reply, key=_PLACE)
    return Header.of(rows), rows[1:]


def _tidy() -> Flow[bool]:
    """Make tasks ready whose time has come, and end those whose time is over.

    True when there may be more of the latter than fit a batch.
    """
    yield Query(SQL["release_due"], (limits.BATCH,))
    ((ended,),) = yield Query(SQL["expire"], (limits.BATCH, _EXPIRED, EXPIRED))
    return bool(ended == limits.BATCH)


def _granted(self: Context, ask: Ask, header: Header) -> Flow[Grant]:
    """What an earlier call of the same request was given, as far as it is still held."""
    rows = yield Query(SQL["granted"], (ask.worker_id, header.claimed_at))

    def rank(row: Row) -> tuple[int, int, str]:
        task_id, level, ready_at = row[1], row[4], row[11]
        return (-self.aging.effective(level, header.now - ready_at), ready_at, task_id)

    for lane in {row[3] for row in rows}:
        yield from self.catalogue.lane(lane)
    return Grant([_claimed(self, ask, row) for row in sorted(rows, key=rank)])


def _claimed(self: Context, ask: Ask, row: Row) -> Claimed:
    (
        _,
        task_id,
        attempt,
        lane_id,
        level,
        payload,
        retry_count,
        max_retries,
        returns,
        timeout,
        created_at,
        ready_at,
        spec,
        *_,
    ) = row
    lane = self.catalogue.known.lanes[lane_id]
    return Claimed(
        task_id,
        attempt,
        ask.worker_id,
        lane.type,
        lane.queue,
        level,
        payload,
        retry_count,
        max_retries,
        returns,
        timeout,
        created_at,
        ready_at,
        PLAIN if spec is None else Spec.decode(spec),
    )
