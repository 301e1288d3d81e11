"""Circuit breakers: how the runs of a type went decides whether more of them start."""

from __future__ import annotations

import msgspec

from fairlane.core.breaker import Circuit, after, verdict
from fairlane.core.flow import Flow
from fairlane.core.lanes import UNRULED
from fairlane.core.machine import Move
from fairlane.engines.files import statements
from fairlane.engines.sqlite.calls import WAKE, Execute
from fairlane.engines.sqlite.context import SQL as CATALOGUE
from fairlane.engines.sqlite.context import Context

SQL = statements(__package__, "circuits")

_failures = msgspec.json.Decoder(tuple[int, ...])


class Runs:
    """How many runs went well and how many failed, by lane."""

    def __init__(self) -> None:
        self.counted: dict[int, list[int]] = {}

    def add(self, lane: int, move: Move) -> None:
        """Add a run that ended."""
        good = verdict(move)
        if good is not None:
            self.counted.setdefault(lane, [0, 0])[not good] += 1


def count_runs(self: Context, runs: Runs, now: int) -> Flow[None]:
    """Open and close the circuits of the types that these runs belong to."""
    if not runs.counted:
        return
    controls = yield from self.catalogue.controls()
    by_type: dict[str, tuple[int, int]] = {}
    for lane, (good, bad) in runs.counted.items():
        type = self.catalogue.lane(lane).type
        before = by_type.get(type, (0, 0))
        by_type[type] = (before[0] + good, before[1] + bad)
    turned = False
    for type, (good, bad) in by_type.items():
        breaker = controls.types.get(type, UNRULED).breaker
        if breaker is None:
            continue
        ((failures, open_until),) = yield Execute(SQL["circuit"], (type,))
        circuit = Circuit(_failures.decode(failures) if failures else (), open_until)
        changed = after(circuit, breaker, good, bad, now)
        if changed != circuit:
            stored = msgspec.json.encode(changed.failures)
            yield Execute(SQL["set_circuit"], (stored, changed.open_until, type))
        turned = turned or changed.open_until != open_until
    if turned:
        # One that opened has a new time at which to try: those who wait have to hear of it too.
        yield Execute(CATALOGUE["bump"])
        yield WAKE
