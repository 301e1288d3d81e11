"""The state that all operations share: prefix, a cache of lanes, controls and settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from fairlane.core import limits
from fairlane.core.breaker import Breaker
from fairlane.core.errors import TooManyLanes
from fairlane.core.flow import Flow
from fairlane.core.lanes import Controls, Lane, LaneKey, Rules
from fairlane.core.priority import Aging
from fairlane.core.store_settings import DEFAULT, aging_in
from fairlane.engines.redis.calls import Argument, Run
from fairlane.engines.redis.scripts import Script, script

CATALOGUE = script("catalogue")
OPEN_LANES = script("open_lanes")


class Catalogue:
    """Lanes, controls and settings of one version; immutable, replaced as a whole.

    Scripts receive the version. A script that finds another version returns `stale` and does
    nothing, so an old cache does no harm.
    """

    def __init__(
        self, version: bytes, controls: Controls, lanes: Iterable[Lane], aging: Aging
    ) -> None:
        self.version = version
        self.controls = controls
        self.aging = aging
        self.lanes = {lane.id: lane for lane in lanes}
        self.ids: dict[LaneKey, int] = {lane.key: lane.id for lane in self.lanes.values()}
        self.openings: dict[object, bytes] = {}
        self.timeouts = controls.timeouts()


UNKNOWN = Catalogue(b"", Controls(), (), DEFAULT.aging)


class Context:
    """The context of all operations on one store, in any thread."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.catalogue = UNKNOWN

    def call(self, called: Script, *arguments: Argument) -> Flow[Any]:
        """Run a script on this store and return its reply."""
        return (yield Run(called, self.prefix, arguments))

    def call_in_pieces(self, called: Script, *arguments: Argument) -> Flow[Any]:
        """Do the same with large arguments: payloads and results."""
        return (yield Run(called, self.prefix, arguments, large=True))

    def refresh(self) -> Flow[Catalogue]:
        """Read lanes and controls from the store."""
        self.catalogue = catalogue_of((yield from self.call(CATALOGUE)))
        return self.catalogue

    def lane(self, lane_id: int) -> Flow[Lane | None]:
        """Return a lane by its number; None if it was dropped."""
        if lane_id not in self.catalogue.lanes:
            yield from self.refresh()
        return self.catalogue.lanes.get(lane_id)

    def with_lanes(self, keys: Iterable[LaneKey]) -> Flow[Catalogue]:
        """Return a catalogue with these lanes; open those that do not exist."""
        wanted = set(keys)
        known = self.catalogue
        if not wanted.issubset(known.ids):
            known = yield from self.refresh()
        while missing := wanted.difference(known.ids):  # once, unless they are dropped at once
            stored = [msgspec.json.encode(key) for key in sorted(missing)]
            if (yield from self.call(OPEN_LANES, limits.LANES, *stored)) == b"full":
                raise TooManyLanes
            known = yield from self.refresh()
        return known


def pairs(flat: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the pairs of a reply that lists field, value, field, value."""
    return zip(flat[::2], flat[1::2], strict=True)


def catalogue_of(reply: tuple[bytes, list[bytes], list[bytes], bytes | None]) -> Catalogue:
    """Return the catalogue from a reply of catalogue.lua."""
    version, controls, lanes, settings = reply
    return Catalogue(version, _controls(int(version), controls), _lanes(lanes), aging_in(settings))


_lane_key = msgspec.json.Decoder(LaneKey)


def _lanes(stored: list[bytes]) -> Iterator[Lane]:
    for key, lane_id in pairs(stored):
        queue, type, capabilities = _lane_key.decode(key)
        yield Lane(int(lane_id), queue, type, capabilities)


def _controls(version: int, stored: list[bytes]) -> Controls:
    """Decode controls. Fields: `paused`, `rate`; `<rule> <type>` for a type; `queue <name>`."""
    everything = Rules()
    queues: set[str] = set()
    types: dict[str, Rules] = {}
    for field, value in pairs(stored):
        rule, _, name = field.decode().partition(" ")
        if rule == "queue":
            if value == b"1":
                queues.add(name)
        elif name:
            types[name] = _with(types.get(name, Rules()), rule, value)
        else:
            everything = _with(everything, rule, value)
    return Controls(version, everything, frozenset(queues), types)


def _with(rules: Rules, rule: str, value: bytes) -> Rules:
    match rule:
        case "paused":
            return msgspec.structs.replace(rules, paused=value == b"1")
        case "rate":
            return msgspec.structs.replace(rules, rate=float(value))
        case "breaker":
            breaker = msgspec.json.decode(value, type=Breaker)
            return msgspec.structs.replace(rules, breaker=breaker)
        case "timeout":
            return msgspec.structs.replace(rules, timeout=float(value))
        case "open_until":
            return msgspec.structs.replace(rules, open_until=int(value))
        case _:
            return msgspec.structs.replace(rules, concurrency=int(value))
