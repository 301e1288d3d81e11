"""Circuit breakers: what settled runs say about their types.

A step of its own after the settlement: a breaker need not know of a run at the same instant, but
whoever counts has the type's row locked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from fairlane.core.breaker import CLOSED, Breaker, Circuit, after, verdict
from fairlane.core.flow import Flow
from fairlane.core.settlement import FencedMove
from fairlane.engines.postgres.calls import BEGIN, COMMIT, WAKE, Apart, Query
from fairlane.engines.postgres.context import SQL as CATALOGUE
from fairlane.engines.postgres.context import Context, breaker_of, circuit_of
from fairlane.engines.postgres.rows import array_of_ids
from fairlane.engines.postgres.statements import load

SQL = load("circuits")


class Runs(NamedTuple):
    """How many went well, and how many failed."""

    good: int = 0
    bad: int = 0


class Standing(NamedTuple):
    """How a type with a breaker stands at a time."""

    now: int
    breaker: Breaker
    circuit: Circuit

    def after(self, runs: Runs) -> Circuit:
        return after(self.circuit, self.breaker, runs.good, runs.bad, self.now)

    def ignores(self, runs: Runs) -> bool:
        """Whether these runs mean nothing to it: all went well, as they should."""
        return not runs.bad and self.circuit.open_until is None


def count_runs(self: Context, settled: Iterable[FencedMove]) -> Flow[None]:
    """Have breakers count runs that were settled."""
    if not self.catalogue.known.breakers:
        return
    told = {item.task_id: good for item in settled if (good := verdict(item.move)) is not None}
    if told:
        # Not with a caller's transaction: whoever opens a lane would wait for that.
        yield Apart(lambda: _count(self, told))


def _count(self: Context, told: Mapping[str, bool]) -> Flow[None]:
    runs = yield from _runs(self, told)
    standing = yield from _standing(runs)
    if all(each.ignores(runs[type]) for type, each in standing.items()):
        return
    yield BEGIN
    yield Query(SQL["lock"], (sorted(runs),))
    standing = yield from _standing(runs)
    changed = {type: each.after(runs[type]) for type, each in standing.items()}
    yield Query(SQL["change"], (list(changed), [_stored(each) for each in changed.values()]))
    turned = [
        circuit.open_until
        for type, circuit in changed.items()
        if circuit.open_until != standing[type].circuit.open_until
    ]
    if turned:
        yield Query(CATALOGUE["bump"])
    yield COMMIT
    if turned:
        # One that opened has a new time at which to try: those who wait have to hear of it too.
        yield WAKE


def _runs(self: Context, told: Mapping[str, bool]) -> Flow[dict[str, Runs]]:
    """By type, for those that have a breaker."""
    found: dict[str, Runs] = {}
    for task_id, lane_id in (yield Query(SQL["lanes_of"], (array_of_ids(list(told)),))):
        lane = yield from self.catalogue.lane(lane_id)
        if lane.type in self.catalogue.known.breakers:
            good, bad = found.get(lane.type, Runs())
            found[lane.type] = Runs(good + told[task_id], bad + (not told[task_id]))
    return found


def _standing(types: Iterable[str]) -> Flow[dict[str, Standing]]:
    rows = yield Query(SQL["circuits"], (list(types),))
    return {
        type: Standing(now, breaker, circuit_of(circuit))
        for now, type, stored, circuit in rows
        if (breaker := breaker_of(stored)) is not None
    }


def _stored(circuit: Circuit) -> str | None:
    return None if circuit == CLOSED else msgspec.json.encode(circuit).decode()
