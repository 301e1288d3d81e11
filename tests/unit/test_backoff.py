"""Pauses between attempts, and how long an unavailable store is waited for."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from fairlane import backoff as module
from fairlane.backoff import Backoff, persist, persist_async
from fairlane.core.errors import StoreBusy, StoreFull, StoreUnavailable, StoreUnusable


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    async def sleep_async(self, seconds: float) -> None:
        self.sleep(seconds)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    """Faked for the module, with jitter at its largest."""
    time = Time()
    monkeypatch.setattr(module, "time", time)
    monkeypatch.setattr(module, "asyncio", SimpleNamespace(sleep=time.sleep_async))
    monkeypatch.setattr(module, "random", SimpleNamespace(uniform=lambda _, most: most))
    return time


Persist = Callable[[Callable[[], Any], float], Any]


def persist_awaited(attempt: Callable[[], Any], patience: float) -> Any:
    async def attempt_later() -> Any:
        return attempt()

    later: Callable[[], Awaitable[Any]] = attempt_later
    return asyncio.run(persist_async(later, patience))


@pytest.fixture(params=[persist, persist_awaited])
def keep_trying(request: pytest.FixtureRequest, time: Time) -> Persist:
    """Both colours again."""
    chosen: Persist = request.param
    return chosen


class Away:
    """Fails a number of times, then works."""

    def __init__(self, times: int, error: Exception) -> None:
        self.left = times
        self.error = error
        self.tries = 0

    def __call__(self) -> str:
        self.tries += 1
        if self.left > 0:
            self.left -= 1
            raise self.error
        return "back"


@pytest.mark.usefixtures("time")
class TestBackoff:
    def test_pauses_double_from_the_first_to_the_longest(self) -> None:
        backoff = Backoff(0.05, 2.0)
        pauses = [backoff.next() for _ in range(9)]
        assert pauses == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 2.0])

    def test_a_pause_lies_anywhere_from_a_tenth_of_that(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bounds: list[tuple[float, float]] = []

        def least(low: float, high: float) -> float:
            bounds.append((low, high))
            return low

        monkeypatch.setattr(module, "random", SimpleNamespace(uniform=least))
        backoff = Backoff(0.05, 2.0)
        assert [backoff.next() for _ in range(3)] == pytest.approx([0.005, 0.01, 0.02])
        assert bounds == [(0.005, 0.05), (0.01, 0.1), (0.02, 0.2)]

    def test_an_error_that_says_how_long_it_lasts_is_waited_for(self) -> None:
        error = StoreUnavailable()
        error.after = 3.0
        assert Backoff(0.05, 2.0, 60.0).after(error) == 3.0

    def test_the_last_pause_ends_with_the_patience(self) -> None:
        assert Backoff(patience=0.03).after(StoreUnavailable()) == pytest.approx(0.03)

    @pytest.mark.parametrize("seconds", [0.0, -1.0])
    def test_without_patience_the_error_is_raised(self, seconds: float) -> None:
        error = StoreBusy()
        with pytest.raises(StoreBusy) as caught:
            Backoff(patience=seconds).after(error)
        assert caught.value is error


class TestPersist:
    def test_what_works_is_tried_once(self, keep_trying: Persist, time: Time) -> None:
        attempt = Away(0, StoreUnavailable())
        assert keep_trying(attempt, 10.0) == "back"
        assert (attempt.tries, time.slept) == (1, [])

    @pytest.mark.parametrize("kind", [StoreUnavailable, StoreBusy, StoreFull])
    def test_what_may_pass_is_tried_again(
        self, keep_trying: Persist, time: Time, kind: type[StoreUnavailable]
    ) -> None:
        attempt = Away(3, kind())
        assert keep_trying(attempt, 10.0) == "back"
        assert attempt.tries == 4
        assert time.slept == pytest.approx([0.05, 0.1, 0.2])

    @pytest.mark.parametrize("error", [StoreUnusable(), ValueError("bad"), KeyError("gone")])
    def test_what_lasts_is_not_tried_again(
        self, keep_trying: Persist, time: Time, error: Exception
    ) -> None:
        attempt = Away(1, error)
        with pytest.raises(type(error)) as caught:
            keep_trying(attempt, 10.0)
        assert caught.value is error
        assert (attempt.tries, time.slept) == (1, [])

    def test_patience_runs_out_with_the_last_error(self, keep_trying: Persist, time: Time) -> None:
        error = StoreFull()
        with pytest.raises(StoreFull) as caught:
            keep_trying(Away(10**6, error), 5.0)
        assert caught.value is error
        assert sum(time.slept) == pytest.approx(5.0)
        assert time.slept == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 1.85])

    def test_without_patience_one_try_is_all(self, keep_trying: Persist, time: Time) -> None:
        attempt = Away(1, StoreBusy())
        with pytest.raises(StoreBusy):
            keep_trying(attempt, 0.0)
        assert (attempt.tries, time.slept) == (1, [])
