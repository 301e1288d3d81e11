"""Clocks: what a witness says of the store's clock, and which times it corrects."""

from __future__ import annotations

import pytest

from fairlane.core import clocks
from fairlane.core.clocks import Sighting, Times, Watch, ahead, brought_back, judge
from fairlane.core.model import Spec, moment
from tests.unit.make import NOW, SECOND, worker
from tests.unit.shelf import Shelf

HOUR = 3600 * SECOND


class Witness:
    """A process with a clock of its own."""

    def __init__(self, shelf: Shelf, boot: str = "boot") -> None:
        self.shelf = shelf
        self.boot = boot
        self.seconds = 100.0
        self.slow = 0.0

    def look(self) -> Watch:
        shown = iter((self.seconds, self.seconds + self.slow))
        return self.shelf.run(clocks.watch_clock(self.shelf, self.boot, lambda: next(shown)))

    def wait(self, seconds: float) -> Watch:
        """Time passes on both clocks."""
        self.shelf.now += int(seconds * SECOND)
        self.seconds += seconds
        return self.look()

    def step(self, seconds: float) -> Watch:
        """Somebody sets the store's clock."""
        self.shelf.now += int(seconds * SECOND)
        return self.look()


def test_the_first_who_looks_knows_nothing_of_the_past() -> None:
    assert Witness(Shelf()).look() == Watch(
        NOW, NOW, fresh=True, step=0.0, behind=False, spares=False
    )


def test_a_clock_that_runs_evenly_is_trusted_since_the_first_look() -> None:
    witness = Witness(Shelf())
    witness.look()
    for _ in range(5):
        watch = witness.wait(1000.0)
        assert (watch.since, watch.fresh, watch.step) == (NOW, False, 0.0)


@pytest.mark.parametrize("seconds", [5.0, -5.0, 7200.0, -7200.0])
def test_a_step_is_seen(seconds: float) -> None:
    witness = Witness(Shelf())
    witness.look()
    witness.wait(60.0)
    watch = witness.step(seconds)
    assert (watch.since, watch.fresh) == (witness.shelf.now, True)
    assert watch.step == pytest.approx(seconds)
    assert watch.behind is (seconds < 0)
    assert watch.spares is (seconds > 0)
    later = witness.wait(2.5)
    assert (later.since, later.fresh, later.step) == (watch.since, False, 0.0)


@pytest.mark.parametrize("seconds", [0.9, -0.9])
def test_a_small_difference_is_no_step(seconds: float) -> None:
    witness = Witness(Shelf())
    witness.look()
    assert not witness.step(seconds).step


def test_a_look_that_took_long_says_little() -> None:
    witness = Witness(Shelf())
    witness.look()
    witness.slow = 4.0  # and at which moment the store read its clock, nobody knows
    assert not witness.step(4.9).step
    assert witness.step(5.2).step


def test_nothing_is_deleted_for_an_hour_after_a_step_forward() -> None:
    witness = Witness(Shelf())
    witness.look()
    assert witness.step(7200.0).spares
    assert witness.wait(3599.0).spares
    assert not witness.wait(2.0).spares
    assert witness.step(7200.0).spares
    assert not witness.step(-7200.0).spares


def test_a_clock_is_behind_until_it_has_caught_up() -> None:
    witness = Witness(Shelf())
    witness.look()
    assert witness.step(-100.0).behind
    assert witness.wait(90.0).behind
    assert not witness.wait(10.0).behind


def test_witnesses_of_one_boot_know_what_the_others_saw() -> None:
    shelf = Shelf()
    first, second = Witness(shelf), Witness(shelf)
    first.look()
    second.seconds += 9000.0
    shelf.now += 9000 * SECOND
    assert second.look().since == NOW
    second.wait(9000.0)
    second.step(7200.0)
    assert second.wait(3.0).since == shelf.now - 3 * SECOND


def test_witnesses_of_different_boots_trust_each_other_over_a_short_gap() -> None:
    shelf = Shelf()
    Witness(shelf).look()
    other = Witness(shelf, "another boot")
    other.seconds = 7.0
    shelf.now += 15 * SECOND
    assert other.look().since == NOW
    again = Witness(shelf)
    shelf.now += HOUR
    watch = again.look()
    assert (watch.since, watch.fresh, watch.step, watch.spares) == (shelf.now, True, 0.0, False)


def test_a_clock_that_went_back_between_two_boots_is_not_trusted() -> None:
    shelf = Shelf()
    Witness(shelf).look()
    shelf.now -= 5 * SECOND
    watch = Witness(shelf, "another boot").look()
    assert (watch.fresh, watch.behind) == (True, True)


def test_a_sighting_is_stored_seldom_while_nothing_happens() -> None:
    witness = Witness(Shelf())

    def versions() -> int:
        (document,) = witness.shelf.of("clock").values()
        return document.version

    witness.look()
    for _ in range(4):
        witness.wait(1.0)
    assert versions() == 1
    witness.wait(1.0)
    assert versions() == 2
    witness.step(5.0)
    assert versions() == 3


@pytest.mark.parametrize(
    ("seen_ago", "since_ago", "lost", "dead"),
    [(31, 60, True, True), (31, 29, True, False), (31, 60, False, False), (29, 60, True, False)],
)
def test_a_worker_is_lost_only_on_both_clocks(
    seen_ago: int, since_ago: int, lost: bool, dead: bool
) -> None:
    watch = Watch(NOW, NOW - since_ago * SECOND, fresh=False, step=0.0, behind=False, spares=False)
    silent = worker(lease=30.0, last_heartbeat=moment(NOW - seen_ago * SECOND), lost=lost)
    assert watch.confirms(silent) is dead


def test_what_is_reasonable_is_not_ahead() -> None:
    found = [ahead(NOW + by, NOW) for by in (-SECOND, 0, SECOND, SECOND + 1)]
    assert found == [0, 0, 0, SECOND + 1]


def test_a_retry_waits_its_full_time_from_now_on() -> None:
    then = NOW + 2 * HOUR
    times = Times(then + 30 * SECOND, then, NOW - HOUR, NOW - HOUR)
    assert brought_back(times, dated=False, now=NOW) == Times(
        NOW + 30 * SECOND, NOW, NOW - HOUR, NOW - HOUR
    )


def test_a_delayed_task_is_due_and_ready_at_the_same_time() -> None:
    then = NOW + 2 * HOUR
    times = Times(*(then + 60 * SECOND, then), *[then + 60 * SECOND] * 2)
    due = NOW + 60 * SECOND
    assert brought_back(times, dated=False, now=NOW) == Times(due, NOW, due, due)


@pytest.mark.parametrize(
    ("updated_at", "dated"), [(NOW + 2 * HOUR, True), (NOW, False), (NOW + SECOND, False)]
)
def test_a_time_that_stays(updated_at: int, dated: bool) -> None:
    due = NOW + 3 * HOUR
    assert brought_back(Times(due, updated_at, due, due), dated=dated, now=NOW) is None


@pytest.mark.parametrize(
    ("dated", "attempt", "waits"), [(True, 0, True), (True, 1, False), (False, 0, False)]
)
def test_only_the_first_run_waits_for_a_date(dated: bool, attempt: int, waits: bool) -> None:
    assert Spec(dated=dated).waits_for_date(attempt) is waits


def test_a_first_judgement() -> None:
    seen, step = judge(None, Sighting(NOW, "boot", 1.0, 0.0))
    assert (seen.since, seen.latest, step) == (NOW, NOW, 0.0)
