"""What a worker has and what the store says: which differences count, and when."""

from __future__ import annotations

from collections.abc import Iterable

from fairlane.core.holdings import Comparison, Differences, InHand, Run

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
