"""Flows in both colours, operations, and patience with a store that is away."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from fairlane.core import flow as module
from fairlane.core.errors import StoreBusy, StoreFull, StoreUnavailable, StoreUnusable
from fairlane.core.flow import (
    Flow,
    Mode,
    Op,
    Patience,
    alters,
    perform,
    perform_async,
    persist,
    persist_async,
    reads,
    transacts,
    writes,
)


class Ledger:
    """Operations to look at. `told` records what a flow went through."""

    def __init__(self) -> None:
        self.told: list[str] = []

    @reads
    def sum(self, *numbers: int, start: int = 0) -> Flow[int]:
        """Adds up what the driver answers."""
        total = start
        try:
            for number in numbers:
                total += yield number
        finally:
            self.told.append("closed")
        return total

    @writes
    def careful(self) -> Flow[str]:
        try:
            reply = yield "first"
        except LookupError as error:
            self.told.append(f"caught {error}")
            reply = yield "instead"
        finally:
            self.told.append("closed")
        return f"got {reply}"

    @transacts
    def nothing(self) -> Flow[str]:
        yield from ()
        return "at once"

    @alters
    def breaks(self) -> Flow[None]:
        yield "once"
        raise ZeroDivisionError


Runner = Callable[[Flow[Any], Callable[[Any], Any]], Any]


def blocking(flow: Flow[Any], call: Callable[[Any], Any]) -> Any:
    return perform(flow, call)


def awaited(flow: Flow[Any], call: Callable[[Any], Any]) -> Any:
    async def call_later(request: Any) -> Any:
        await asyncio.sleep(0)
        return call(request)

    return asyncio.run(perform_async(flow, call_later))


@pytest.fixture(params=[blocking, awaited])
def run(request: pytest.FixtureRequest) -> Runner:
    """Both colours: what holds for one holds for the other."""
    chosen: Runner = request.param
    return chosen


class Stop(BaseException):
    """What no flow is asked about: like KeyboardInterrupt."""


class TestPerform:
    def test_a_flow_is_sent_the_replies_to_its_calls(self, run: Runner) -> None:
        ledger = Ledger()
        assert run(ledger.sum(1, 2, 3, start=100).flow(), lambda number: 10 * number) == 160
        assert ledger.told == ["closed"]

    def test_calls_are_made_in_order_and_one_at_a_time(self, run: Runner) -> None:
        calls: list[int] = []

        def call(number: int) -> int:
            calls.append(number)
            return 0

        run(Ledger().sum(3, 1, 2).flow(), call)
        assert calls == [3, 1, 2]

    def test_a_flow_without_calls_answers_at_once(self, run: Runner) -> None:
        def call(request: Any) -> Any:
            raise AssertionError("nothing was to be called")

        assert run(Ledger().nothing().flow(), call) == "at once"

    def test_none_is_a_reply_like_any_other(self, run: Runner) -> None:
        assert run(Ledger().careful().flow(), lambda _: None) == "got None"

    def test_an_error_of_a_call_is_the_flows_to_handle(self, run: Runner) -> None:
        def call(request: str) -> str:
            if request == "first":
                raise LookupError("nobody there")
            return request

        ledger = Ledger()
        assert run(ledger.careful().flow(), call) == "got instead"
        assert ledger.told == ["caught nobody there", "closed"]

    def test_an_error_that_the_flow_does_not_handle_is_passed_on(self, run: Runner) -> None:
        def call(_: str) -> str:
            raise OSError("cut off")

        ledger = Ledger()
        with pytest.raises(OSError, match="cut off"):
            run(ledger.careful().flow(), call)
        assert ledger.told == ["closed"]

    def test_an_error_while_handling_an_error_is_passed_on(self, run: Runner) -> None:
        def call(request: str) -> str:
            raise LookupError(request)

        ledger = Ledger()
        with pytest.raises(LookupError, match="instead"):
            run(ledger.careful().flow(), call)
        assert ledger.told == ["caught first", "closed"]

    def test_an_error_of_the_flow_itself_is_passed_on(self, run: Runner) -> None:
        with pytest.raises(ZeroDivisionError):
            run(Ledger().breaks().flow(), lambda request: request)

    def test_a_call_that_raises_stop_iteration_does_not_end_the_flow_well(
        self, run: Runner
    ) -> None:
        def call(_: int) -> int:
            raise StopIteration(5)

        with pytest.raises(RuntimeError):
            run(Ledger().sum(1).flow(), call)

    def test_an_interruption_closes_the_flow_without_asking_it(self, run: Runner) -> None:
        def call(_: str) -> str:
            raise Stop

        ledger = Ledger()
        with pytest.raises(Stop):
            run(ledger.careful().flow(), call)
        assert ledger.told == ["closed"]

    async def test_a_cancelled_call_closes_the_flow_at_once(self) -> None:
        ledger = Ledger()
        called = asyncio.Event()

        async def call(_: str) -> str:
            called.set()
            await asyncio.Event().wait()
            raise AssertionError("the wait is for ever")

        task = asyncio.create_task(perform_async(ledger.careful().flow(), call))
        await called.wait()
        assert ledger.told == []
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ledger.told == ["closed"]


class TestOperations:
    @pytest.mark.parametrize(
        ("op", "name", "mode"),
        [
            (Ledger().sum(1), "sum", Mode.READ),
            (Ledger().careful(), "careful", Mode.WRITE),
            (Ledger().nothing(), "nothing", Mode.TRANSACTION),
            (Ledger().breaks(), "breaks", Mode.SCHEMA),
        ],
    )
    def test_an_operation_knows_its_name_and_what_it_asks_of_a_connection(
        self, op: Op[Any], name: str, mode: Mode
    ) -> None:
        assert (op.name, op.mode) == (name, mode)
        assert repr(op) == f"<{mode.value} {name}>"

    def test_decorated_methods_keep_their_name_and_docstring(self) -> None:
        assert Ledger.sum.__name__ == "sum"
        assert Ledger.sum.__doc__ == "Adds up what the driver answers."

    def test_nothing_happens_until_it_is_performed(self) -> None:
        ledger = Ledger()
        ledger.sum(1).flow()
        assert ledger.told == []

    def test_an_operation_can_be_performed_again_from_the_start(self, run: Runner) -> None:
        op = Ledger().sum(1, 2, start=10)
        assert op.flow() is not op.flow()
        assert run(op.flow(), lambda number: number) == 13
        assert run(op.flow(), lambda number: -number) == 7

    def test_who_asks_may_be_less_patient_than_usual_but_not_more(self, run: Runner) -> None:
        op = Ledger().sum(1, 2)
        hurried = op.within(0.5)
        assert (op.patience(10.0), hurried.patience(10.0), hurried.patience(0.2)) == (10, 0.5, 0.2)
        assert (hurried.name, hurried.mode) == (op.name, op.mode)
        assert run(hurried.flow(), lambda number: number) == 3


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
class TestPatience:
    def test_pauses_double_from_50_ms_to_2_s(self) -> None:
        patience = Patience(60.0)
        pauses = [patience.pause(StoreUnavailable()) for _ in range(9)]
        assert pauses == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 2.0])

    def test_a_pause_lies_anywhere_below_that(self, monkeypatch: pytest.MonkeyPatch) -> None:
        bounds: list[tuple[float, float]] = []

        def least(low: float, high: float) -> float:
            bounds.append((low, high))
            return low

        monkeypatch.setattr(module, "random", SimpleNamespace(uniform=least))
        patience = Patience(60.0)
        assert [patience.pause(StoreUnavailable()) for _ in range(3)] == [0.0, 0.0, 0.0]
        assert bounds == [(0, 0.05), (0, 0.1), (0, 0.2)]

    def test_the_last_pause_ends_with_the_patience(self) -> None:
        assert Patience(0.03).pause(StoreUnavailable()) == pytest.approx(0.03)

    @pytest.mark.parametrize("seconds", [0.0, -1.0])
    def test_who_has_none_waits_for_nothing(self, seconds: float) -> None:
        error = StoreBusy()
        with pytest.raises(StoreBusy) as caught:
            Patience(seconds).pause(error)
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
