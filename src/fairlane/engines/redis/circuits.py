"""How types with a circuit breaker fare: the second half of settling."""

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
    """Runs of a type that went well, and that failed."""

    good: int = 0
    bad: int = 0


def count(
    self: Context, version: bytes, ended: Iterable[tuple[bool | None, int, int]]
) -> Flow[None]:
    """Let breakers know of runs that ended: how, in which lane, how many.

    Under the version of the catalogue that the runs ended under. It may lag behind them by a call:
    a breaker is a rule of thumb. But nothing is counted twice or lost between two that count.
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
    # A closed circuit does not care about what goes well.
    news = {
        type: runs
        for type, runs in types.items()
        if runs.bad or known.controls.types[type].open_until is not None
    }
    while news:
        news = yield from _count_once(self, news)


def _count_once(self: Context, news: Mapping[str, Runs]) -> Flow[dict[str, Runs]]:
    """Answers what has to be tried again, because someone else counted at the same time."""
    known = self.catalogue
    now, circuits = yield from self.call(CIRCUITS, *news)
    stale: dict[str, Runs] = {}
    for (type, runs), stored in zip(news.items(), circuits, strict=True):
        breaker = known.controls.types.get(type, UNRULED).breaker
        if stored is None or breaker is None:
            continue  # taken away in the meantime
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
    # From now on one slot counts, or several again: someone has to have counted those taken.
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
