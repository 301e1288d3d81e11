"""What the operations of this engine share: a cache of lanes, controls and settings."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping

import msgspec

from fairlane.core import limits
from fairlane.core.breaker import CLOSED, Breaker, Circuit
from fairlane.core.errors import TooManyLanes
from fairlane.core.flow import Flow
from fairlane.core.lanes import Controls, Lane, LaneKey, Opening, Rules, opening, slotted
from fairlane.core.model import Ask
from fairlane.core.priority import Aging
from fairlane.core.retention import Sweep
from fairlane.core.store_settings import DEFAULT, SETTINGS, aging_in
from fairlane.engines.postgres.calls import BEGIN, COMMIT, Apart, Query
from fairlane.engines.postgres.statements import load

SQL = load("catalogue")

Stream = tuple[LaneKey, int]
"""A lane by its key, and a level."""


def breaker_of(stored: str | None) -> Breaker | None:
    """Return the circuit breaker of a type, or None."""
    return None if stored is None else _breaker.decode(stored)


def circuit_of(stored: str | None) -> Circuit:
    """Return the circuit of a type."""
    return CLOSED if stored is None else _circuit.decode(stored)


_breaker = msgspec.json.Decoder(Breaker)
_circuit = msgspec.json.Decoder(Circuit)


class Known:
    """The catalogue at one version. It is never changed, only replaced by a newer one."""

    def __init__(
        self,
        controls: Controls,
        lanes: Mapping[int, Lane],
        levels: Mapping[int, frozenset[int]],
        last_stream: int,
        aging: Aging,
    ) -> None:
        self.version = controls.version
        self.controls = controls
        self.lanes = lanes
        self.levels = levels
        self.last_lane = max(lanes, default=0)
        self.last_stream = last_stream
        self.aging = aging
        self.ids = {lane.key: lane.id for lane in lanes.values()}
        self.slotted = slotted(lanes.values(), controls)
        self.breakers = {type for type, rules in controls.types.items() if rules.breaker}
        self.timeouts = controls.timeouts()
        self._openings: dict[object, Opening] = {}

    def opening(self, ask: Ask) -> Opening:
        """Return the lanes that a claim may read, and their limits."""
        key = (ask.types, ask.queues, ask.capabilities)
        found = self._openings.get(key)
        if found is None:
            if len(self._openings) >= limits.ASK_KINDS:
                self._openings.clear()
            found = self._openings[key] = opening(self.lanes.values(), self.controls, ask)
        return found

    def missing(self, streams: Iterable[Stream]) -> set[Stream]:
        """Return those of these streams that do not exist yet."""
        return {
            (key, level)
            for key, level in streams
            if key not in self.ids or level not in self.levels[self.ids[key]]
        }


NOTHING = Known(Controls(), {}, {}, 0, DEFAULT.aging)


class Catalogue:
    """A cache of lanes, controls and settings.

    Operations use `known` without asking the store: a claim checks its version in the statement
    that claims, and a submission checks that its lanes are open (see sql/lanes.sql). A lane never
    changes, and its number is not used again. An operation that needs it over several
    calls keeps its own reference: `known` may be replaced between two calls.
    """

    def __init__(self) -> None:
        self.known = NOTHING

    def forget(self) -> None:
        """Empty the cache: the store may be another one."""
        self.known = NOTHING

    def load(self) -> Flow[Known]:
        """Read what has changed in the store, and return the catalogue."""
        known: Known = yield Apart(self._load)
        return known

    def _load(self) -> Flow[Known]:
        before = self.known
        # The version is read first: if the rest is newer, the next claim loads again.
        ((version, paused, rate, settings, count),) = yield Query(SQL["everything"], (SETTINGS,))
        old = before if before.version <= version else NOTHING
        lanes, levels, last_stream = yield from _lanes_since(old)
        if len(lanes) != count and old is not NOTHING:  # some were dropped
            lanes, levels, last_stream = yield from _lanes_since(NOTHING)
        types = yield Query(SQL["types"])
        queues = yield Query(SQL["paused_queues"])
        controls = Controls(
            version=version,
            everything=Rules(paused, rate),
            paused_queues=frozenset(queue for (queue,) in queues),
            types={
                type: Rules(
                    paused,
                    rate,
                    most,
                    breaker_of(breaker),
                    circuit_of(circuit).open_until,
                    timeout,
                )
                for type, paused, rate, most, breaker, circuit, timeout in types
            },
        )
        found = Known(controls, lanes, levels, last_stream, aging_in(settings))
        if self.known is before or self.known.version < version:  # else another load was faster
            self.known = found
        return found

    def lane(self, lane_id: int) -> Flow[Lane | None]:
        """Return a lane by its number in the store; None if it was dropped."""
        known = self.known
        if lane_id not in known.lanes:
            known = yield from self.load()
        return known.lanes.get(lane_id)

    def open(self, missing: set[Stream]) -> Flow[Known]:
        """Add these streams, and their lanes, in a transaction of its own."""
        known: Known = yield Apart(lambda: self._open(missing))
        return known

    def _open(self, missing: set[Stream]) -> Flow[Known]:
        yield BEGIN
        yield Query(SQL["lock_lanes"])
        known = yield from self.load()
        ids = dict(known.ids)
        wanted = {key for key, _ in missing}
        yield Query(SQL["reopen"], ([ids[key] for key in wanted.intersection(ids)],))
        new = sorted(wanted.difference(ids))
        if len(known.lanes) + len(new) > limits.LANES:
            raise TooManyLanes
        if new:
            columns = [
                [queue for queue, _, _ in new],
                [type for _, type, _ in new],
                [json.dumps(capabilities) for _, _, capabilities in new],
            ]
            for lane_id, queue, type, capabilities in (yield Query(SQL["add_lanes"], columns)):
                ids[queue, type, tuple(json.loads(capabilities))] = lane_id
        pairs = sorted((ids[key], level) for key, level in missing)
        lanes, levels = zip(*pairs, strict=True)
        yield Query(SQL["add_streams"], (list(lanes), list(levels)))
        yield Query(SQL["bump"])
        yield COMMIT
        return (yield from self.load())


def _lanes_since(old: Known) -> Flow[tuple[dict[int, Lane], dict[int, frozenset[int]], int]]:
    """Return lanes, their levels and the last stream: what is known, and what was added since.

    Lanes and streams are added under a lock, so their numbers grow in the order of commits.
    """
    lanes = dict(old.lanes)
    levels = dict(old.levels)
    for lane_id, queue, type, capabilities in (yield Query(SQL["lanes"], (old.last_lane,))):
        lanes[lane_id] = Lane(lane_id, queue, type, tuple(json.loads(capabilities)))
        # Its streams are known if it was added between these two statements the last time.
        levels.setdefault(lane_id, frozenset())
    streams = yield Query(SQL["streams"], (old.last_stream,))
    for _, lane_id, level in streams:
        levels[lane_id] = levels.get(lane_id, frozenset()) | {level}
    return lanes, levels, streams[-1][0] if streams else old.last_stream


class Context:
    """The state that all operations on one store share."""

    def __init__(self) -> None:
        self.catalogue = Catalogue()
        self.writes = itertools.count(1)
        self.claimed = 0
        """How many tasks were claimed since the last vacuum."""
        self.sweep = Sweep(least="00000000-0000-0000-0000-000000000000")
        """Where prune goes on, by the ids of tasks."""
