"""find: the tasks that a filter admits, newest first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from fairlane.core import limits
from fairlane.core.errors import InvalidFilter
from fairlane.core.filters import Filter, Found, cursor_of, task_id_of
from fairlane.core.flow import Flow, reads
from fairlane.core.states import TERMINAL, WAITING, State
from fairlane.engines.files import fill, part
from fairlane.engines.postgres.calls import Query
from fairlane.engines.postgres.context import Context, Known
from fairlane.engines.postgres.statements import load

SQL = load("find")
_MATCHES = part(SQL["find"], "matches")

_PARAMETER = re.compile(r"\$\d+")
_FEWEST = 100
"""How many tasks to read at least, as some of them may not be admitted."""


class Source(NamedTuple):
    """A table to search.

    `narrow` is the condition of a partial index, `confirmed` a join that only rows in the right
    state pass, `states` the states to find (None: all rows of the table are in the right one).
    """

    table: str
    narrow: str | None = None
    confirmed: str = ""
    states: frozenset[State] | None = None

    @property
    def task(self) -> str:
        """Return the alias of the table that has a task's content."""
        return "place" if self.table == "content" else "task"

    def joined(self, filter: Filter) -> str:
        """Return the joins that the filter needs."""
        reads_content = filter.reads_spec or filter.since is not None or filter.until is not None
        apart = self.table != "content"
        return part(_MATCHES, "content") if apart and reads_content else self.confirmed

    def budget(self, filter: Filter) -> int:
        """Return how many rows may be read: half as many if each needs a join."""
        return limits.SCAN // 2 if self.joined(filter) else limits.SCAN


_ALL = Source("content")
_QUEUED = Source("content", confirmed=part(_MATCHES, "queued"))
_HELD = Source("held")
_SELDOM = {
    # Both conditions, or the planner does not recognise the partial index.
    state: Source(
        "outcome", f"place.state = {state.code} AND place.state <> {State.COMPLETED.code}"
    )
    for state in TERMINAL - {State.COMPLETED}
}


@reads
def find(self: Context, filter: Filter, limit: int, cursor: str | None = None) -> Flow[Found]:
    if not 1 <= limit <= limits.PAGE:
        raise InvalidFilter(f"A page has 1 to {limits.PAGE:,} tasks, not {limit:,}.")
    below = task_id_of(cursor)
    sources = list(_sources(filter))
    bits = None
    if filter.types is not None or filter.queues is not None:
        bits = _bits(filter, (yield from self.catalogue.load()))
    if not sources or (bits is not None and not any(bits)):
        return Found([], None)
    floor = yield from _end_of_stretch(filter, sources, below)
    most = max(limit, _FEWEST)
    found: list[str] = []
    while True:
        rows = yield _Wanted(filter, bits, below, floor, most).query(sources)
        found += [task_id for task_id, spec in rows if spec is None or filter.admits_spec(spec)]
        if len(found) >= limit:
            return Found(found[:limit], cursor_of(found[limit - 1]))
        if len(rows) < most:
            return Found(found, None if floor is None else cursor_of(floor))
        below = rows[-1][0]


def _bits(filter: Filter, known: Known) -> bytes:
    """Return a bit for each lane, set for those that a filter admits."""
    bits = bytearray(known.last_lane // 8 + 1)
    for lane in known.lanes.values():
        if filter.admits_lane(lane):
            bits[lane.id // 8] |= 1 << lane.id % 8
    return bytes(bits)


def _sources(filter: Filter) -> Iterator[Source]:
    """Yield the tables that can have tasks that a filter admits."""
    states = frozenset(State) if filter.states is None else filter.states
    if filter.worker_id is not None:
        states -= WAITING
    if filter.ended_before is not None:
        states &= TERMINAL
    if states == frozenset(State):
        yield _ALL
        return
    if State.QUEUED in states:
        yield _QUEUED
    if State.EXECUTING in states:
        yield _HELD
    waiting = states & {State.SCHEDULED, State.RETRYING}
    if waiting:
        yield Source("waiting", states=waiting)
    ended = states & TERMINAL
    if State.COMPLETED in ended:
        yield Source("outcome", states=ended)
    else:
        for state in sorted(ended):
            yield _SELDOM[state]


def _end_of_stretch(
    filter: Filter, sources: Sequence[Source], below: str | None
) -> Flow[str | None]:
    """Return the last task to read, so that the budget holds; None: read all."""
    values = _Values()
    stretches = [
        fill(
            SQL["end_of_stretch"],
            table=source.table,
            conditions=_all_of([*_below(values, below), *_given(source.narrow)]),
            skipped=str(source.budget(filter) // len(sources) - 1),
        )
        for source in sources
    ]
    rows = yield Query(" UNION ALL ".join(stretches), values.given)
    return max((task_id for (task_id,) in rows), default=None)


class _Values:
    """The values of a statement, in the order of its parameters."""

    def __init__(self) -> None:
        self.given: list[Any] = []

    def add(self, value: Any) -> str:
        """Add a value and return its parameter."""
        self.given.append(value)
        return f"${len(self.given)}"

    def bind(self, condition: str, *values: Any) -> str:
        """Add values and return a condition of the file with their parameters."""
        given = iter(values)
        return _PARAMETER.sub(lambda _: self.add(next(given)), part(_MATCHES, condition))


class _Wanted:
    """A search, as the query that performs it."""

    def __init__(
        self, filter: Filter, bits: bytes | None, below: str | None, floor: str | None, most: int
    ) -> None:
        self._filter = filter
        self._bits = bits
        self._below = below
        self._floor = floor
        self._most = most

    def query(self, sources: Sequence[Source]) -> Query:
        values = _Values()
        matches = " UNION ALL ".join(self._matches(source, values) for source in sources)
        most = values.add(self._most)
        return Query(fill(SQL["find"], matches=matches, most=most), values.given)

    def _matches(self, source: Source, values: _Values) -> str:
        conditions = _all_of(self._conditions(source, values))
        return fill(
            _MATCHES,
            conditions=conditions.replace("task.", f"{source.task}."),
            joins=source.joined(self._filter),
            table=source.table,
            spec=f"{source.task}.spec" if self._filter.reads_spec else "NULL::bytea",
        )

    def _conditions(self, source: Source, values: _Values) -> Iterator[str]:
        filter = self._filter
        yield from _below(values, self._below)
        yield from _given(source.narrow)
        if self._floor is not None:
            yield values.bind("down_to", self._floor)
        if self._bits is not None:
            yield values.bind("lane", 8 * len(self._bits), self._bits)
        if filter.levels is not None:
            yield values.bind("level", sorted(filter.levels))
        if source.states is not None:
            yield values.bind("state", [each.code for each in source.states])
        if filter.worker_id is not None:
            yield values.bind("worker", filter.worker_id)
        if filter.ended_before is not None:
            yield values.bind("ended", filter.ended_before)
        if filter.since is not None:
            yield values.bind("since", filter.since)
        if filter.until is not None:
            yield values.bind("until", filter.until)
        if filter.reads_spec:
            yield values.bind("needles", _needles(filter))


def _below(values: _Values, task_id: str | None) -> Iterator[str]:
    if task_id is not None:
        yield values.bind("below", task_id)


def _given(condition: str | None) -> Iterator[str]:
    if condition is not None:
        yield condition


def _all_of(conditions: Iterator[str] | Sequence[str]) -> str:
    return " AND ".join(conditions) or "true"


def _needles(filter: Filter) -> list[bytes]:
    """Return bytes that a stored spec contains if the filter admits it."""
    wanted = [
        *filter.tags.items(),
        ("workflow_id", filter.workflow_id),
        ("schedule_id", filter.schedule_id),
        ("owner", filter.owner),
    ]
    return [msgspec.json.encode({name: value})[1:-1] for name, value in wanted if value is not None]
