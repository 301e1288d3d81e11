"""Queues and types one by one."""

from fairlane.core.breakdown import Demand, demand_of, queues_of, types_of
from fairlane.core.facts import Stream
from fairlane.core.lanes import UNRULED, Controls, Lane, Rules
from fairlane.core.states import State
from tests.unit.make import NOW, SECOND, facts, tally

LANES = {1: Lane(1, "a", "mail", ()), 2: Lane(2, "a", "sms", ()), 3: Lane(3, "b", "mail", ("x",))}


def test_queues() -> None:
    found = queues_of(
        facts(
            lanes=LANES,
            tallies=[
                tally(None, State.QUEUED, 3, lane=1),
                tally(None, State.QUEUED, 4, lane=2),
                tally(State.QUEUED, State.COMPLETED, 1, lane=2),
                tally(None, State.QUEUED, 1, lane=3),
                tally(None, State.QUEUED, 9, lane=99),
            ],
            streams=[
                Stream(1, 5, 3, NOW - 7 * SECOND, NOW),
                Stream(2, 5, 3, NOW - 9 * SECOND, NOW),
                Stream(3, 5, 1, NOW + SECOND, NOW + SECOND),
                Stream(99, 5, 1, 0, 0),
            ],
            controls=Controls(paused_queues=frozenset({"b", "c"})),
        )
    )
    shown = [
        (each.queue, each.paused, each.by_status[State.QUEUED], each.oldest_age_seconds)
        for each in found
    ]
    assert shown == [("a", False, 6, 9.0), ("b", True, 1, 0.0), ("c", True, 0, 0.0)]
    assert found[0].by_status[State.COMPLETED] == 1


def test_types() -> None:
    rules = Rules(concurrency=2)
    found = types_of(
        facts(
            lanes=LANES,
            tallies=[tally(None, State.QUEUED, 3, lane=1), tally(None, State.QUEUED, 1, lane=3)],
            held={1: 2, 3: 1, 99: 5},
            controls=Controls(types={"mail": rules, "fax": Rules(paused=True)}),
        )
    )
    shown = [(each.type, each.rules, each.held, each.by_status[State.QUEUED]) for each in found]
    assert shown == [("fax", Rules(paused=True), 0, 0), ("mail", rules, 3, 4)]
    (sms,) = types_of(facts(lanes=LANES, tallies=[tally(None, State.QUEUED, lane=2)]))
    assert (sms.type, sms.rules) == ("sms", UNRULED)


def test_what_needs_a_capability() -> None:
    lanes = {
        1: Lane(1, "a", "mail", ()),
        2: Lane(2, "a", "film", ("gpu",)),
        3: Lane(3, "b", "film", ("gpu", "ssd")),
        4: Lane(4, "b", "song", ("ssd",)),
    }
    tallies = [tally(None, State.QUEUED, 10 * lane, lane=lane) for lane in lanes]
    tallies.append(tally(State.QUEUED, State.EXECUTING, 1, lane=3))
    busy = facts(lanes=lanes, tallies=tallies)
    assert demand_of(busy) == {"gpu": Demand(49, 1, 0), "ssd": Demand(69, 1, 0)}
    assert demand_of(busy, "a") == {"gpu": Demand(20, 0, 0)}
    controls = Controls(paused_queues=frozenset({"a"}), types={"song": Rules(paused=True)})
    paused = facts(lanes=lanes, tallies=tallies, controls=controls)
    assert demand_of(paused) == {"gpu": Demand(49, 1, 20), "ssd": Demand(69, 1, 40)}
    everything = facts(
        lanes=lanes, tallies=tallies, controls=Controls(everything=Rules(paused=True))
    )
    assert demand_of(everything, "b")["ssd"] == Demand(69, 1, 69)
