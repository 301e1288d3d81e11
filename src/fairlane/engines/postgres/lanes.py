"""Removing lanes: the engine's part of `drop_lanes`, see core/unused_lanes.py."""

from __future__ import annotations

from collections.abc import Sequence

from fairlane.core.facts import Facts
from fairlane.core.flow import Flow
from fairlane.core.unused_lanes import DROPPED
from fairlane.engines.postgres.calls import BEGIN, COMMIT, FOLDING, Query
from fairlane.engines.postgres.context import SQL as CATALOGUE
from fairlane.engines.postgres.context import Context
from fairlane.engines.postgres.statements import load

SQL = load("lanes")


def remove_lanes(self: Context, facts: Facts, lanes: Sequence[int]) -> Flow[int]:
    yield BEGIN
    yield Query(CATALOGUE["lock_lanes"])
    yield Query(SQL["lock_tallies"], (FOLDING,))
    # Those that an earlier call closed; the others are closed for a later call.
    rows = yield Query(SQL["removable"], (list(lanes),))
    removable = [lane for (lane,) in rows]
    if removable:
        yield Query(SQL["remove"], (removable, DROPPED))
        yield Query(CATALOGUE["bump"])
    yield Query(SQL["close"], (list(lanes),))
    yield COMMIT
    return len(removable)
