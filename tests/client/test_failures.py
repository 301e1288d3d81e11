"""What the caller of a task learns of its failure."""

from __future__ import annotations

import traceback

import pytest

from fairlane import Fail, RetryPolicy, TaskFailed
from fairlane.client.testing import MemoryApp
from fairlane.runtime.failures import SEE_TRACEBACK, exception_type


class Unpaid(Exception):
    """Raised by handlers here."""


async def failure(app: MemoryApp, error: BaseException) -> TaskFailed:
    @app.task(max_retries=0)
    async def charge() -> None:
        raise error

    handle = await charge.submit()
    await app.work()
    with pytest.raises(TaskFailed) as caught:
        await handle.result()
    assert caught.value.task_id == handle.task_id
    return caught.value


async def test_a_failure_has_what_is_known_of_it() -> None:
    async with MemoryApp() as app:
        failed = await failure(app, Unpaid("no money\nat all"))
    assert (failed.state, failed.attempt, failed.reason) == (
        "dead_letter",
        1,
        "max_retries_exceeded",
    )
    assert (failed.error_code, failed.exception_type) == ("Unpaid", f"{__name__}.Unpaid")
    assert failed.traceback is not None
    assert "raise error" in failed.traceback
    assert failed.code == "task_failed"
    assert str(failed).endswith(f"is dead_letter: no money\nat all. {SEE_TRACEBACK}")


async def test_the_code_that_a_handler_chose_arrives() -> None:
    async with MemoryApp() as app:
        failed = await failure(app, Fail("no such card", code="NO_CARD"))
    assert (failed.error_code, failed.reason) == ("NO_CARD", "not_retriable")
    assert failed.exception_type == "fairlane.runtime.outcomes.Fail"


async def test_a_task_that_was_cancelled_or_deleted_has_no_error() -> None:
    async with MemoryApp() as app:

        @app.task(retry=RetryPolicy())
        async def work() -> None: ...

        handle = await work.submit()
        await handle.cancel()
        with pytest.raises(TaskFailed) as caught:
            await handle.result()
        assert (caught.value.state, caught.value.error_code) == ("cancelled", None)
        await app.run(app.backend.ops.delete([handle.task_id]))
        with pytest.raises(TaskFailed) as caught:
            await handle.result()
        assert (caught.value.task_id, caught.value.state) == (handle.task_id, None)


def test_the_class_of_an_exception_is_read_from_its_traceback() -> None:
    def formatted(error: BaseException) -> str:
        return "".join(traceback.format_exception(error))

    error = Unpaid("second: Traceback (most recent call last):\nValueError: third")
    error.__context__ = KeyError("first")
    assert exception_type(formatted(error)) == f"{__name__}.Unpaid"
    error.__cause__ = KeyError("first")
    assert exception_type(formatted(error)) == f"{__name__}.Unpaid"
    assert exception_type(formatted(ValueError())) == "ValueError"
    assert exception_type("Traceback (most recent call last):\n  File cut off he…") is None
    assert exception_type(formatted(ExceptionGroup("two", [ValueError()]))) is None
    assert exception_type("(its traceback cannot be shown)") is None
    assert exception_type(None) is None
