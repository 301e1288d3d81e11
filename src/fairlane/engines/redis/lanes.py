"""Removing lanes: the engine's part of `drop_lanes`, see core/unused_lanes.py."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairlane.core.facts import Facts
from fairlane.core.flow import Flow
from fairlane.engines.redis.calls import Argument
from fairlane.engines.redis.context import Context
from fairlane.engines.redis.scripts import script

REMOVE_LANES = script("remove_lanes")

_AT_ONCE = 100
"""Lanes that one script looks at, while everybody else waits."""


def remove_lanes(self: Context, facts: Facts, lanes: Sequence[int]) -> Flow[int]:
    counters: dict[int, list[Argument]] = {lane: [] for lane in lanes}
    for key, times, _ in facts.tallies:
        if key.lane in counters:
            counters[key.lane] += (":".join(map(str, key)), times)
    removed = 0
    for start in range(0, len(lanes), _AT_ONCE):
        arguments: list[Argument] = []
        for lane in lanes[start : start + _AT_ONCE]:
            fields = counters[lane]
            stored = msgspec.json.encode(facts.lanes[lane].key)
            arguments += (stored, lane, len(fields) // 2, *fields)
        removed += yield from self.call(REMOVE_LANES, *arguments)
    return removed
