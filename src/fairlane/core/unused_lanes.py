"""Lanes that nothing uses: which they are, and when they are dropped.

There may be `limits.LANES` lanes, and everybody who may submit can make new ones. A lane without
tasks is dropped when nothing has used it for a while, so that names that were used once do not
take the places of others for ever. When most places are taken, it is dropped much sooner.

What was counted in a dropped lane goes on to count in the lane DROPPED, so that totals never fall.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from fairlane.core import limits
from fairlane.core.documents import Document, Documents, rewrites, write
from fairlane.core.facts import Facts
from fairlane.core.flow import Flow, Op
from fairlane.core.lane_shares import give_lanes_back
from fairlane.core.lanes import UNRULED
from fairlane.core.model import WorkerStatus
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import NOWHERE

DROPPED = 0
"""The lane in which the counters of dropped lanes are added up. No task is in it."""


class Rest(msgspec.Struct, frozen=True, array_like=True):
    """An unused lane: since when (microseconds), and how many transitions it had counted then."""

    since: int
    counted: int


Resting = dict[int, Rest]
"""Unused lanes by their numbers."""


def resting(facts: Facts, before: Mapping[int, Rest]) -> Resting:
    """Return the lanes that are unused now. `before` is what this returned the last time.

    A lane that has counted something in between was used, even if it is empty again.
    """
    tasks: Counter[int] = Counter()
    counted: Counter[int] = Counter()
    for key, times, _ in facts.tallies:
        tasks[key.lane] += times * ((key.target != NOWHERE) - (key.source != NOWHERE))
        counted[key.lane] += times
    served = _served_types(facts)
    ruled = {type for type, rules in facts.controls.types.items() if rules != UNRULED}
    # The newest lane stays, so that an engine can count on from it: no number is used twice.
    newest = max(facts.lanes, default=DROPPED)
    found: Resting = {}
    for lane in facts.lanes.values():
        if (
            lane.id != newest
            and not tasks[lane.id]
            and not facts.held.get(lane.id)
            and lane.type not in served
            and lane.type not in ruled
            and lane.queue not in facts.controls.paused_queues
        ):
            known = before.get(lane.id)
            same = known is not None and known.counted == counted[lane.id]
            since = min(known.since, facts.now) if known is not None and same else facts.now
            found[lane.id] = Rest(since, counted[lane.id])
    return found


def _served_types(facts: Facts) -> set[str]:
    """Return the types that living workers name."""
    return {
        type
        for worker in facts.workers
        if worker.status is not WorkerStatus.DEAD and not worker.lost
        for type in worker.types or ()
    }


def overdue(unused: Resting, lanes: int, now: int) -> list[int]:
    """Return the unused lanes to drop, the longest unused first. `lanes`: how many there are."""
    crowded = lanes > limits.LANES * limits.CROWDED
    seconds = limits.LANE_SECONDS_CROWDED if crowded else limits.LANE_SECONDS
    until = now - int(seconds * MICROSECONDS)
    due = sorted((rest.since, lane) for lane, rest in unused.items() if rest.since <= until)
    return [lane for _, lane in due]


# The operation, see `store`.

_KIND = "lanes"
_decoder = msgspec.json.Decoder(Resting)


class Laned(Documents, Protocol):
    """A store that has documents, tells facts, and removes lanes."""

    def facts(self) -> Op[Facts]: ...

    def remove_lanes(self, facts: Facts, lanes: Sequence[int]) -> Flow[int]:
        """Remove those of these lanes that have no task, and add their counters to DROPPED.

        `facts` is what was read before: a lane that was used since stays. A lane may also stay
        until a later call, while a submission under way could still use it. Answers how many were
        removed.
        """


@rewrites
def drop_lanes(self: Laned) -> Flow[int]:
    _, (stored,) = yield from self.read_documents(_KIND, [_KIND])
    facts = yield from self.facts().flow()
    yield from give_lanes_back(self, (lane.key for lane in facts.lanes.values()))
    before = {} if stored is None else _decoder.decode(stored.value)
    unused = resting(facts, before)
    if unused != before:
        version = 0 if stored is None else stored.version
        value = msgspec.json.encode(unused)
        yield from write(self, _KIND, [Document(_KIND, value, facts.now, version=version)])
    due = overdue(unused, len(facts.lanes), facts.now)[: limits.BATCH]
    return (yield from self.remove_lanes(facts, due)) if due else 0
