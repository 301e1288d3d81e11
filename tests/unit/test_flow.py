"""Flows in both colours, and operations."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from fairlane.core.flow import (
    Flow,
    Mode,
    Op,
    alters,
    perform,
    perform_async,
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
