"""Circuit breakers: how the runs of a type went decides whether more of them start.

Runs are counted after they are settled, in another transaction, with the type's row locked.
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
    """How many runs went well, and how many failed."""

    good: int = 0
    bad: int = 0


class TypeCircuit(NamedTuple):
    """The breaker and the circuit of a type at a time."""

    now: int
    breaker: Breaker
    circuit: Circuit

    def after(self, runs: Runs) -> Circuit:
        """Return the circuit after these runs."""
        return after(self.circuit, self.breaker, runs.good, runs.bad, self.now)

    def ignores(self, runs: Runs) -> bool:
        """Return whether these runs change nothing: all went well, and the circuit is closed."""
        return not runs.bad and self.circuit.open_until is None


def count_runs(self: Context, settled: Iterable[FencedMove]) -> Flow[None]:
    """Count settled runs, and open and close the circuits of their types."""
    if not self.catalogue.known.breakers:
        return
    results = {item.task_id: good for item in settled if (good := verdict(item.move)) is not None}
    if results:
        # Apart from a caller's transaction, whose end every new lane would wait for.
        yield Apart(lambda: _count(self, results))


def _count(self: Context, results: Mapping[str, bool]) -> Flow[None]:
    runs = yield from _runs_by_type(self, results)
    before = yield from _read_circuits(runs)
    if all(each.ignores(runs[type]) for type, each in before.items()):
        return
    yield BEGIN
    yield Query(SQL["lock"], (sorted(runs),))
    before = yield from _read_circuits(runs)
    changed = {type: each.after(runs[type]) for type, each in before.items()}
    yield Query(SQL["change"], (list(changed), [_stored(each) for each in changed.values()]))
    turned = [
        circuit.open_until
        for type, circuit in changed.items()
        if circuit.open_until != before[type].circuit.open_until
    ]
    if turned:
        yield Query(CATALOGUE["bump"])
    yield COMMIT
    if turned:
        # A circuit that opened has a new time for its next run: waiting workers need to know it.
        yield WAKE


def _runs_by_type(self: Context, results: Mapping[str, bool]) -> Flow[dict[str, Runs]]:
    """Return the runs of each type that has a breaker."""
    found: dict[str, Runs] = {}
    for task_id, lane_id in (yield Query(SQL["lanes_of"], (array_of_ids(list(results)),))):
        lane = yield from self.catalogue.lane(lane_id)
        if lane.type in self.catalogue.known.breakers:
            good, bad = found.get(lane.type, Runs())
            found[lane.type] = Runs(good + results[task_id], bad + (not results[task_id]))
    return found


def _read_circuits(types: Iterable[str]) -> Flow[dict[str, TypeCircuit]]:
    rows = yield Query(SQL["circuits"], (list(types),))
    return {
        type: TypeCircuit(now, breaker, circuit_of(circuit))
        for now, type, stored, circuit in rows
        if (breaker := breaker_of(stored)) is not None
    }


def _stored(circuit: Circuit) -> str | None:
    return None if circuit == CLOSED else msgspec.json.encode(circuit).decode()
