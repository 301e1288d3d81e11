"""Circuit breakers: how the runs of a type went decides whether more of them start.

Runs are counted in the transaction that settles them. It locks rows in this order: its tasks by id,
their dependents (without waiting), its types by name, the catalogue. A change of controls locks
types before the catalogue, too; new lanes lock the catalogue last; claims lock neither. So no
transaction waits for another in a circle.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import msgspec

from fairlane.core.breaker import CLOSED, Breaker, Circuit, after, verdict
from fairlane.core.flow import Flow
from fairlane.core.settlement import FencedMove
from fairlane.engines.postgres.calls import BEGIN, COMMIT, WAKE, Query
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


def find_types(self: Context, moves: Collection[FencedMove]) -> Flow[dict[str, str]]:
    """Return the types of the tasks whose moves can change a circuit, by task."""
    if not self.catalogue.known.breakers:
        return {}
    judged = {item.task_id for item in moves if verdict(item.move) is not None}
    failed = {item.task_id for item in moves if verdict(item.move) is False}
    if not judged:
        return {}
    rows = yield Query(SQL["types_of"], (array_of_ids(sorted(judged)),))
    return {
        task_id: type
        for task_id, type, circuit in rows
        # A success does not change a closed circuit.
        if task_id in failed or circuit_of(circuit).open_until is not None
    }


def count_runs(settled: Iterable[FencedMove], types: Mapping[str, str]) -> Flow[bool]:
    """Count the settled runs of tasks of these types. Return whether a circuit opened or closed.

    Part of a transaction.
    """
    runs = _runs_by_type(settled, types)
    if not runs:
        return False
    yield Query(SQL["lock"], (sorted(runs),))
    before = yield from _read_circuits(runs)
    changed = {type: each.after(runs[type]) for type, each in before.items()}
    yield Query(SQL["change"], (list(changed), [_stored(each) for each in changed.values()]))
    turned = any(
        circuit.open_until != before[type].circuit.open_until for type, circuit in changed.items()
    )
    if turned:
        yield Query(CATALOGUE["bump"])
    return turned


def count_apart(settled: Iterable[FencedMove], types: Mapping[str, str]) -> Flow[None]:
    """Count settled runs in a transaction of its own."""
    yield BEGIN
    turned = yield from count_runs(settled, types)
    yield COMMIT
    if turned:
        yield WAKE


def _runs_by_type(settled: Iterable[FencedMove], types: Mapping[str, str]) -> dict[str, Runs]:
    found: dict[str, Runs] = {}
    for item in settled:
        type, result = types.get(item.task_id), verdict(item.move)
        if type is not None and result is not None:
            good, bad = found.get(type, Runs())
            found[type] = Runs(good + result, bad + (not result))
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
