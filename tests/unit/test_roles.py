"""Roles: one process has each of them for a term, however they meet and wherever the clock goes."""

from typing import Any

import msgspec
import pytest

from fairlane.core import documents, facts, limits, roles
from fairlane.core.errors import StoreBusy
from fairlane.core.facts import Facts, Sample, Stream, sample_in
from fairlane.core.flow import Flow, reads
from tests.unit.make import NOW, SECOND
from tests.unit.make import facts as made_facts
from tests.unit.shelf import Shelf, once


class Counting(Shelf):
    """One that has facts to tell."""

    def __init__(self, **changes: Any) -> None:
        super().__init__()
        self._changes = changes

    @reads
    def facts(self) -> Flow[Facts]:
        yield from ()
        return made_facts(now=self.now, **self._changes)


def test_a_term_is_kept_and_renewed() -> None:
    shelf = Shelf()

    def elect(candidate: str) -> bool:
        return shelf.run(roles.elect(shelf, "keeper", candidate, 10.0))

    assert elect("a")
    assert not elect("b")
    shelf.now += 9 * SECOND
    assert elect("a")
    shelf.now += 9 * SECOND
    assert not elect("b")
    shelf.now += 1 * SECOND
    assert elect("b")
    shelf.now -= 20 * SECOND
    assert elect("a"), "a term that ends in 30 seconds was taken while the clock was ahead"


def test_of_two_candidates_the_quicker_one_is_elected() -> None:
    shelf = Shelf()
    shelf.interfere = once(lambda: shelf.run(roles.elect(shelf, "keeper", "b", 10.0)))
    assert not shelf.run(roles.elect(shelf, "keeper", "a", 10.0))


def test_who_is_always_overtaken_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_ATTEMPTS", 3)
    shelf = Shelf()
    shelf.run(roles.elect(shelf, "keeper", "a", 10.0))

    def overtake() -> None:
        held = shelf.of("role")["keeper"]
        shelf.of("role")["keeper"] = msgspec.structs.replace(held, version=held.version + 1)

    shelf.interfere = overtake
    with pytest.raises(StoreBusy, match="try again"):
        shelf.run(roles.elect(shelf, "keeper", "a", 10.0))


def test_a_sample_every_few_seconds() -> None:
    shelf = Counting()
    assert shelf.run(facts.sample(shelf))
    assert not shelf.run(facts.sample(shelf))
    shelf.now += int(limits.SAMPLE_SECONDS * SECOND)
    assert shelf.run(facts.sample(shelf))
    first, second = shelf.run(facts.samples(shelf, 0, 10))
    assert (first.at, second.at) == (NOW, shelf.now)
    assert shelf.run(facts.samples(shelf, second.at, 10)) == [second]
    assert shelf.run(facts.samples(shelf, 0, 1)) == [first]
    assert shelf.run(facts.samples(shelf, 0, -1)) == []


def test_the_first_sample_says_since_when_it_counts() -> None:
    shelf = Counting()
    assert shelf.run(facts.sample(shelf))
    shelf.now += int(limits.SAMPLE_SECONDS * SECOND)
    assert shelf.run(facts.sample(shelf))
    first, second = shelf.run(facts.samples(shelf, 0, 10))
    assert (first.began, second.began) == (NOW, 0)


@pytest.mark.parametrize(("oldest", "began"), [(NOW - 90, NOW - 90), (NOW + 90, NOW)])
def test_a_store_is_as_old_as_its_oldest_waiting_task(oldest: int, began: int) -> None:
    shelf = Counting(streams=[Stream(1, 5, 2, NOW, NOW), Stream(1, 6, 2, oldest, NOW)])
    assert shelf.run(facts.sample(shelf))
    assert shelf.run(facts.samples(shelf, 0, 10))[0].began == began


def test_a_store_with_samples_is_not_new() -> None:
    """An earlier version may have kept roles elsewhere."""
    shelf = Counting(samples=[Sample(NOW - 90)])
    assert shelf.run(facts.sample(shelf))
    assert shelf.run(facts.samples(shelf, 0, 10))[0].began == 0


def test_a_sample_of_an_earlier_version_began_nowhere() -> None:
    assert sample_in(b"[5,1]") == Sample(5, 1, began=0)


def test_samples_in_either_form() -> None:
    taken = Sample(NOW, 1, depths=(1, 2, 3, 4))
    assert (
        sample_in(msgspec.json.encode(taken)) == sample_in(msgspec.msgpack.encode(taken)) == taken
    )
