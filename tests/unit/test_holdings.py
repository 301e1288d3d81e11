"""What a worker has and what the store says: which differences count, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from fairlane.core.flow import Flow, Op, perform, reads, writes
from fairlane.core.holdings import (
    Comparison,
    Differences,
    Holdings,
    InHand,
    Run,
    disown,
    read_all,
)
from fairlane.core.machine import COMPLETE
from fairlane.core.model import Task, Verdict
from fairlane.core.outcomes import Disowned
from fairlane.core.settlement import Settled, Settlement
from fairlane.core.states import State
from tests.unit.make import NOON, TASK_ID, stored

A, B, C = ("a", 1), ("b", 1), ("c", 2)
NOTHING = Differences([], [])


def hand(
    *runs: Run, leaving: Iterable[Run] = (), asked: int = 0, answered: int | None = None
) -> InHand:
    return InHand(
        frozenset(runs), frozenset(leaving), asked, asked if answered is None else answered
    )


def compared(
    comparison: Comparison, listed: Iterable[Run], before: InHand, after: InHand | None = None
) -> Differences:
    return comparison.compare(frozenset(listed), before, before if after is None else after)


def test_nothing_follows_while_both_agree() -> None:
    comparison = Comparison()
    for _ in range(3):
        assert compared(comparison, [A, B, C], hand(A, B, leaving=[C])) == NOTHING
        assert not comparison.pending


def test_an_unknown_run_counts_once_it_was_found_twice() -> None:
    comparison = Comparison()
    assert compared(comparison, [A, B], hand(A)) == NOTHING
    assert comparison.pending
    assert compared(comparison, [A, B], hand(A)) == Differences([B], [])
    assert not comparison.pending


def test_a_missing_run_counts_once_it_was_found_twice() -> None:
    comparison = Comparison()
    assert compared(comparison, [A], hand(A, B)) == NOTHING
    assert comparison.pending
    assert compared(comparison, [A], hand(A, B)) == Differences([], [B])
    assert not comparison.pending


def test_one_too_many_and_one_too_few_are_two_differences() -> None:
    comparison = Comparison()
    compared(comparison, [A], hand(B))
    assert compared(comparison, [A], hand(B)) == Differences([A], [B])


def test_another_attempt_is_another_run() -> None:
    comparison = Comparison()
    compared(comparison, [("a", 2)], hand(("a", 1)))
    assert compared(comparison, [("a", 2)], hand(("a", 1))) == Differences([("a", 2)], [("a", 1)])


def test_a_difference_that_goes_away_is_forgotten() -> None:
    comparison = Comparison()
    compared(comparison, [A], hand(B))
    assert compared(comparison, [A, B], hand(A, B)) == NOTHING
    assert not comparison.pending
    assert compared(comparison, [A], hand(B)) == NOTHING


def test_a_run_that_is_being_claimed_is_left_alone() -> None:
    """As long as any claim is under way that may have taken it."""
    comparison = Comparison()
    waiting = hand(asked=5, answered=4)
    for _ in range(3):
        assert compared(comparison, [A], waiting) == NOTHING
    # It arrives, and ends.
    assert compared(comparison, [A], hand(A, asked=6, answered=5)) == NOTHING
    assert compared(comparison, [A], hand(asked=6, answered=5)) == NOTHING


def test_a_claim_that_began_later_cannot_have_taken_it() -> None:
    comparison = Comparison()
    assert compared(comparison, [A], hand(asked=5, answered=4)) == NOTHING
    assert compared(comparison, [A], hand(asked=6, answered=5)) == Differences([A], [])


def test_the_claim_must_be_answered_before_the_listing_begins() -> None:
    comparison = Comparison()
    waiting, answered = hand(asked=5, answered=4), hand(asked=5, answered=5)
    assert compared(comparison, [A], waiting) == NOTHING
    # It arrived, ran, and was settled while the store was asked.
    assert compared(comparison, [A], waiting, answered) == NOTHING
    assert compared(comparison, [], answered) == NOTHING
    assert not comparison.pending


def test_what_was_in_hand_before_or_after_the_listing_is_known() -> None:
    comparison = Comparison()
    for before, after in (
        (hand(A), hand(leaving=[A])),
        (hand(leaving=[A]), hand()),
        (hand(), hand(A)),
        (hand(), hand(leaving=[A])),
    ):
        for _ in range(2):
            assert compared(comparison, [A], before, after) == NOTHING
        assert not comparison.pending


def test_what_was_in_hand_only_before_or_only_after_is_not_missing() -> None:
    comparison = Comparison()
    for before, after in ((hand(A), hand()), (hand(), hand(A)), (hand(A), hand(leaving=[A]))):
        for _ in range(2):
            assert compared(comparison, [], before, after) == NOTHING
        assert not comparison.pending


def test_all_pages_are_read() -> None:
    pages = {None: Holdings([A], "1"), "1": Holdings([B, A], "2"), "2": Holdings([])}
    asked: list[str | None] = []

    async def page(cursor: str | None) -> Holdings:
        asked.append(cursor)
        return pages[cursor]

    assert asyncio.run(read_all(page)) == {A, B}
    assert asked == [None, "1", "2"]


class Engine:
    """Knows some tasks, and applies every settlement."""

    disown = disown

    def __init__(self, *tasks: Task | None) -> None:
        self.tasks = list(tasks)
        self.settled: list[Settlement] = []

    @reads
    def heads(self, task_ids: Sequence[str]) -> Flow[list[Task | None]]:
        assert len(task_ids) == len(self.tasks)
        yield
        return self.tasks

    @writes
    def settle(
        self, settlements: Sequence[Settlement], *, reaping: bool = False
    ) -> Flow[list[Settled]]:
        assert not reaping
        self.settled += settlements
        yield
        return [Settled(Verdict.APPLIED, COMPLETE) for _ in settlements]


def disowned(engine: Engine, *runs: Run) -> Any:
    op: Op[list[Verdict]] = engine.disown("w1", runs)
    return perform(op.flow(), lambda _: None)


def test_only_what_the_worker_holds_is_disowned() -> None:
    held = stored(state=State.EXECUTING, attempt=2, worker_id="w1", started_at=NOON)
    waits = stored(state=State.QUEUED, attempt=2)
    engine = Engine(held, held, waits, None)
    verdicts = disowned(engine, (TASK_ID, 2), (TASK_ID, 1), (TASK_ID, 2), (TASK_ID, 2))
    assert verdicts == [Verdict.APPLIED, Verdict.STALE, Verdict.STALE, Verdict.MISSING]
    assert engine.settled == [Settlement(TASK_ID, 2, "w1", Disowned(started=True), held)]


def test_a_run_without_a_start_is_disowned_as_such() -> None:
    engine = Engine(stored(state=State.EXECUTING, attempt=1, worker_id="w1"))
    assert disowned(engine, (TASK_ID, 1)) == [Verdict.APPLIED]
    assert [each.outcome for each in engine.settled] == [Disowned(started=False)]
