"""Where new tasks stand, as a server tells it between two looks at the queues."""

from __future__ import annotations

from fairlane.core.estimates import Outlook, Position
from fairlane.core.facts import Sample
from fairlane.server.places import Places

SECOND = 1_000_000


class Queues:
    """Queues and a clock to be set."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.depth = self.started = self.completed = 0
        self.past: list[Sample] = []
        self.recalls: list[int] = []

    async def look(self) -> Outlook:
        sample = Sample(
            int(self.now * SECOND),
            started=self.started,
            completed=self.completed,
            depths=(self.depth,),
        )
        return Outlook({"q": {5: self.depth}}, self.depth, self.depth, {"q": self.started}, sample)

    async def recall(self, now: int) -> list[Sample]:
        self.recalls.append(now)
        return self.past

    def clock(self) -> float:
        return self.now


def places_of(queues: Queues) -> Places:
    return Places(queues.look, queues.recall, queues.clock)


async def test_tasks_that_leave_between_two_looks_are_allowed_for() -> None:
    queues = Queues()
    places = places_of(queues)
    await places.outlook()
    queues.now += 10
    queues.started = queues.completed = 1_000
    await places.outlook()
    # A hundred leave in a second: of 30 that are submitted in 0.3 s none is left.
    found = []
    for _ in range(30):
        queues.now += 0.01
        found.append(places.add("q", 5).position)
    assert max(found) <= 2
    assert places.add("other", 5).position == 1


async def test_the_past_is_recalled_at_first_and_after_a_minute() -> None:
    queues = Queues()
    queues.depth = 80
    at = int(queues.now * SECOND)
    queues.past = [
        Sample(at - 20 * SECOND, started=1, completed=0, depths=(80,)),
        Sample(at - 10 * SECOND, started=401, completed=400, depths=(80,)),
    ]
    places = places_of(queues)
    queues.started = queues.completed = 400
    await places.outlook()
    assert places.add("q", 5) == Position(81, 2.0)
    queues.now += 59
    await places.outlook()
    assert queues.recalls == [at]
    queues.now += 61
    await places.outlook()
    assert queues.recalls == [at, at + 120 * SECOND]


async def test_what_this_process_submits_is_work_from_then_on() -> None:
    queues = Queues()
    places = places_of(queues)
    await places.outlook()
    for _ in range(300):
        places.add("q", 5)
    queues.now += 5
    queues.depth, queues.started, queues.completed = 100, 200, 200
    await places.outlook()
    assert places.add("q", 5) == Position(101, 2.5)
