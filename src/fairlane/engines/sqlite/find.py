"""find: tasks by what they are like, newest first."""

from __future__ import annotations

import json
from typing import Protocol

from fairlane.core import limits
from fairlane.core.errors import InvalidFilter
from fairlane.core.filters import Filter, Found, cursor_of, task_id_of
from fairlane.core.flow import Flow, reads
from fairlane.core.states import State
from fairlane.engines.files import statements
from fairlane.engines.sqlite.calls import Execute
from fairlane.engines.sqlite.context import Context
from fairlane.engines.sqlite.rows import Row

SQL = statements(__package__, "find")

_BEYOND = "g"  # sorts after every task id
_FIRST_LOOK = 200

# Where tasks in a state are found in the order of their ids.
_IN_ORDER = {
    State.SCHEDULED: "waiting",
    State.RETRYING: "waiting",
    State.EXECUTING: "held",
    State.FAILED: "ended",
    State.DEAD_LETTER: "ended",
    State.CANCELLED: "ended",
}


@reads
def find(self: Context, filter: Filter, limit: int, cursor: str | None = None) -> Flow[Found]:
    if not 1 <= limit <= limits.PAGE:
        raise InvalidFilter(f"A page has 1 to {limits.PAGE:,} tasks, not {limit:,}.")
    below = task_id_of(cursor) or _BEYOND
    yield from self.catalogue.refresh()
    every = self.catalogue.lanes()
    lanes = {lane.id for lane in every.values() if filter.admits_lane(lane)}
    found: list[str] = []
    if not lanes:
        return Found(found, None)
    source = yield from _source(filter, lanes, all_lanes=len(lanes) == len(every))
    most, left = max(limit, _FIRST_LOOK), limits.SCAN
    while left:
        most = min(most, left)
        rows, reached = yield from source.rows(below, most)
        for task_id in _admitted(filter, lanes, rows):
            found.append(task_id)
            if len(found) == limit:
                return Found(found, cursor_of(task_id))
        if reached is None:
            return Found(found, None)
        below, left, most = reached, left - most, 2 * most
    return Found(found, cursor_of(below))


def _admitted(filter: Filter, lanes: set[int], rows: list[Row]) -> list[str]:
    """Return the ids of those that are meant, in the same order."""
    states = {state.code: state for state in State}
    return [
        task_id
        for task_id, lane, level, created_at, spec, code, completed_at, worker_id in rows
        if lane in lanes
        and filter.admits(states[code], level, created_at, completed_at, worker_id)
        and (not filter.reads_spec or filter.admits_spec(spec))
    ]


class Source(Protocol):
    """Where candidates come from."""

    def rows(self, below: str, most: int) -> Flow[tuple[list[Row], str | None]]:
        """Return up to `most` candidates below an id, newest first, and where to continue.

        None: there are no more.
        """


class Everything:
    """All tasks. SQLite itself leaves out most that cannot match."""

    def __init__(self, filter: Filter, lanes: set[int], *, all_lanes: bool) -> None:
        asked = (filter.states, filter.worker_id, filter.ended_before)
        self._statement = SQL["any" if asked == (None, None, None) else "any_standing"]
        self._parameters = (
            None if all_lanes else json.dumps(list(lanes)),
            None if filter.states is None else json.dumps([s.code for s in filter.states]),
            filter.reads_spec,
        )

    def rows(self, below: str, most: int) -> Flow[tuple[list[Row], str | None]]:
        boundary = (yield Execute(SQL["boundary"], (below, most))).fetchone()
        reached = None if boundary is None else boundary[0]
        rows = yield Execute(self._statement, (below, reached or "", *self._parameters))
        return rows.fetchall(), reached


class Some:
    """Tasks in states whose tables are in the order of ids, and queued ones read beforehand."""

    def __init__(self, states: list[State], queued: list[Row]) -> None:
        self._states = states
        self._queued = queued

    def rows(self, below: str, most: int) -> Flow[tuple[list[Row], str | None]]:
        found = [row for row in self._queued if row[0] < below]
        for state in self._states:
            found += yield Execute(SQL[_IN_ORDER[state]], (below, most, state.code))
        found.sort(key=lambda row: row[0], reverse=True)
        return found[:most], found[most - 1][0] if len(found) >= most else None


def _source(filter: Filter, lanes: set[int], *, all_lanes: bool) -> Flow[Source]:
    """Return the smallest place that has all that a filter admits."""
    everything = Everything(filter, lanes, all_lanes=all_lanes)
    if filter.states is None or State.COMPLETED in filter.states:
        return everything
    streams = []
    if State.QUEUED in filter.states:
        streams = [
            stream
            for stream in (yield Execute(SQL["depths"]))
            if stream[0] in lanes and (filter.levels is None or stream[1] in filter.levels)
        ]
        if sum(depth for _, _, depth in streams) > limits.SCAN:
            return everything
    queued: list[Row] = []
    for lane, level, _ in streams:
        queued += yield Execute(SQL["stream"], (lane, level))
    return Some([state for state in _IN_ORDER if state in filter.states], queued)
