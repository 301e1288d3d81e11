"""What the operations of this engine share: a clock, and a cache of lanes and settings."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable

import msgspec

from fairlane.core import limits
from fairlane.core.breaker import Breaker
from fairlane.core.errors import TooManyLanes
from fairlane.core.flow import Flow
from fairlane.core.lanes import Controls, Lane, LaneKey, Opening, Rules, opening, slotted
from fairlane.core.model import Ask
from fairlane.core.retention import Sweep
from fairlane.core.store_settings import DEFAULT, SETTINGS, aging_in
from fairlane.engines.files import statements
from fairlane.engines.sqlite.calls import Execute

SQL = statements(__package__, "catalogue")


class Epoch:
    """Counts the files that the store has had: what was cached of one is not true of the next."""

    def __init__(self) -> None:
        self.number = 0


class Catalogue(threading.local):
    """A cache of lanes, controls and settings.

    Each thread sees its own state of the database, so each has a cache of its own.
    """

    def __init__(self, epoch: Epoch) -> None:
        self._current = epoch
        self.forget()

    def renew(self) -> None:
        """Clear the caches of all threads: the store's file is another one."""
        self._current.number += 1

    def forget(self) -> None:
        """Clear the cache: a transaction was rolled back, and with it perhaps a lane."""
        self._epoch = self._current.number
        self._version = 0
        self._controls = Controls()
        self._lanes: dict[int, Lane] = {}
        self._ids: dict[LaneKey, int] = {}
        self._openings: dict[object, Opening] = {}
        self.aging = DEFAULT.aging
        """How tasks age, as of the last `refresh`."""
        self.slotted: frozenset[int] = frozenset()
        """Lanes in which the end of one run lets another begin, as of the last `refresh`."""
        self.timeouts: dict[str, float] = {}
        """The timeouts of types, as of the last `refresh`."""

    @property
    def size(self) -> int:
        """The number of lanes, once `refresh` has run in this transaction."""
        return len(self._lanes)

    def lane(self, lane_id: int) -> Lane:
        """Return a lane by its number, once `refresh` has run in this transaction."""
        return self._lanes[lane_id]

    def lanes(self) -> dict[int, Lane]:
        """Return all lanes by their numbers, once `refresh` has run in this transaction."""
        return dict(self._lanes)

    def known_lane(self, lane_id: int) -> Lane | None:
        """Return a lane by its number, if there is one."""
        return self._lanes.get(lane_id)

    def refresh(self, version: int | None = None) -> Flow[None]:
        """Bring the cache up to date; `version` is the current one if the caller knows it."""
        if version is None:
            ((version,),) = yield Execute(SQL["version"])
        if version != self._version or self._epoch != self._current.number:
            yield from self._load()

    def controls(self) -> Flow[Controls]:
        """Return what is paused and limited."""
        yield from self.refresh()
        return self._controls

    def opening(self, ask: Ask) -> Opening:
        """Return the lanes that `ask` may take from, once `refresh` has run in this transaction."""
        key = (ask.types, ask.queues, ask.capabilities)
        found = self._openings.get(key)
        if found is None:
            if len(self._openings) >= limits.ASK_KINDS:
                self._openings.clear()
            found = self._openings[key] = opening(self._lanes.values(), self._controls, ask)
        return found

    def lanes_for(self, keys: Iterable[LaneKey]) -> Flow[dict[LaneKey, int]]:
        """Return the numbers of these lanes; those that do not exist yet are opened."""
        yield from self.refresh()  # a lane may have been dropped
        missing = set(keys).difference(self._ids)
        if missing:
            yield from self._open(missing)
        return self._ids

    def _open(self, missing: set[LaneKey]) -> Flow[None]:
        ((count,),) = yield Execute(SQL["count_lanes"])
        if count + len(missing) > limits.LANES:
            raise TooManyLanes
        for queue, type, capabilities in sorted(missing):
            yield Execute(SQL["add_lane"], (queue, type, json.dumps(capabilities)))
        yield Execute(SQL["bump"])
        yield from self.refresh()

    def _load(self) -> Flow[None]:
        self.forget()
        ((version, paused, rate, settings),) = yield Execute(SQL["everything"], (SETTINGS,))
        rows = yield Execute(SQL["lanes"])
        for lane_id, queue, type, capabilities in rows:
            lane = Lane(lane_id, queue, type, tuple(json.loads(capabilities)))
            self._lanes[lane_id] = lane
            self._ids[lane.key] = lane_id
        types = yield Execute(SQL["types"])
        queues = yield Execute(SQL["paused_queues"])
        self._controls = Controls(
            version=version,
            everything=Rules(bool(paused), rate),
            paused_queues=frozenset(queue for (queue,) in queues),
            types={
                type: Rules(bool(paused), rate, most, breaker_of(breaker), *rest)
                for type, paused, rate, most, breaker, *rest in types
            },
        )
        self.aging = aging_in(settings)
        self._version = version
        self.slotted = slotted(self._lanes.values(), self._controls)
        self.timeouts = self._controls.timeouts()


def breaker_of(stored: bytes | None) -> Breaker | None:
    """Return a stored circuit breaker, if there is one."""
    return None if stored is None else _breaker.decode(stored)


_breaker = msgspec.json.Decoder(Breaker)


class Context:
    """Shared by all operations on one store."""

    def __init__(self) -> None:
        self.catalogue = Catalogue(Epoch())
        self.clock_offset = 0
        self.sweep = Sweep(least=0)
        """Where prune goes on, by the numbers of tasks."""

    def clock(self) -> int:
        """Microseconds since 1970. The writing host's clock is the engine's clock."""
        return time.time_ns() // 1_000 + self.clock_offset
