"""Circuit breakers: count the runs that ended, the second half of apply."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from fairlane.core.breaker import Circuit, after
from fairlane.core.flow import Flow
from fairlane.core.lanes import UNRULED
from fairlane.engines.redis.context import Context
from fairlane.engines.redis.scripts import script

CIRCUITS = script("circuits")
SET_CIRCUIT = script("set_circuit")

_circuit = msgspec.json.Decoder(Circuit)


class Runs(msgspec.Struct):
    """The numbers of runs of a type that succeeded and that failed."""

    good: int = 0
    bad: int = 0


def count_runs(
    self: Context, version: bytes, ended: Iterable[tuple[bool | None, int, int]]
) -> Flow[None]:
    """Count ended runs for circuit breakers: (success or None, lane, number of runs).

    `version` is the version of the catalogue under which the runs ended. Counting is one call
    later than the runs, which is precise enough for a breaker. But concurrent counts lose no run
    and count none twice.
    """
    known = self.catalogue
    if known.version != version:
        known = yield from self.refresh()
    types: dict[str, Runs] = {}
    for good, lane, times in ended:
        type = known.lanes[lane].type
        if good is not None and known.controls.types.get(type, UNRULED).breaker is not None:
            runs = types.setdefault(type, Runs())
            if good:
                runs.good += times
            else:
                runs.bad += times
    # A success does not change a closed circuit.
    counted = {
        type: runs
        for type, runs in types.items()
        if runs.bad or known.controls.types[type].open_until is not None
    }
    while counted:
        counted = yield from _count_once(self, counted)


def _count_once(self: Context, counted: Mapping[str, Runs]) -> Flow[dict[str, Runs]]:
    """Count runs; return those to retry, because another client changed the circuit meanwhile."""
    known = self.catalogue
    now, circuits = yield from self.call(CIRCUITS, *counted)
    stale: dict[str, Runs] = {}
    for (type, runs), stored in zip(counted.items(), circuits, strict=True):
        breaker = known.controls.types.get(type, UNRULED).breaker
        if stored is None or breaker is None:
            continue  # the breaker was removed meanwhile
        before = _circuit.decode(stored)
        then = after(before, breaker, runs.good, runs.bad, int(now))
        if then != before and not (yield from _store(self, type, stored, before, then)):
            stale[type] = runs
    if stale:
        yield from self.refresh()
    return stale


def _store(self: Context, type: str, stored: bytes, before: Circuit, then: Circuit) -> Flow[bool]:
    known = self.catalogue
    changed = then.open_until != before.open_until
    # The number of slots changes between one and several, so the taken slots must be counted.
    lanes = [lane.id for lane in known.lanes.values() if lane.type == type] if changed else []
    reply = yield from self.call(
        SET_CIRCUIT,
        known.version,
        type,
        stored,
        msgspec.json.encode(then),
        f"open_until {type}",
        b"" if then.open_until is None else then.open_until,
        int(changed),
        *lanes,
    )
    if reply == b"stale":
        return False
    if changed:
        yield from self.refresh()
    return True
