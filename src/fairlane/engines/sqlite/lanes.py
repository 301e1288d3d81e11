"""Removing lanes: the engine's part of `drop_lanes`, see core/unused_lanes.py."""

from __future__ import annotations

import json
from collections.abc import Sequence

from fairlane.core.facts import Facts
from fairlane.core.flow import Flow
from fairlane.core.unused_lanes import DROPPED
from fairlane.engines.files import statements
from fairlane.engines.sqlite.calls import Execute
from fairlane.engines.sqlite.context import SQL as CATALOGUE
from fairlane.engines.sqlite.context import Context

SQL = statements(__package__, "lanes")


def remove_lanes(self: Context, facts: Facts, lanes: Sequence[int]) -> Flow[int]:
    # The operation is one transaction, which nobody else writes in: the facts still hold.
    listed = json.dumps(lanes)
    yield Execute(SQL["fold_tallies"], (DROPPED, listed))
    yield Execute(SQL["drop_tallies"], (listed,))
    yield Execute(SQL["drop_streams"], (listed,))
    yield Execute(SQL["drop_lanes"], (listed,))
    yield Execute(CATALOGUE["bump"])
    return len(lanes)
