"""Tasks as users get them: values, not the JSON that is stored."""

from __future__ import annotations

import msgspec
import pytest

from fairlane import Fairlane, Task
from fairlane.client.testing import MemoryApp
from fairlane.core.errors import InvalidResult, UnknownCodec
from fairlane.runtime.tasks import readable
from tests.unit.make import stored


async def test_a_task_has_values() -> None:
    """A result of bytes reached the response of a web application as `"328350"`."""
    async with MemoryApp() as app:

        @app.task
        async def square(numbers: list[int]) -> int:
            return sum(number**2 for number in numbers)

        handle = await square.submit(list(range(100)))
        waiting = await app.get(handle.task_id)
        assert waiting is not None
        assert waiting.result is None
        await app.work()
        (listed,) = (await app.list()).tasks
        for task in (await app.get(handle.task_id), await app.ended(handle.task_id), listed):
            assert isinstance(task, Task)
            assert (task.result, task.stored.result) == (328350, b"328350")
            assert task.payload == task.parameters == {"numbers": list(range(100))}
            assert repr(task) == f"<Task {handle.task_id} square completed>"


def test_blocking_twins_have_them_too() -> None:
    with MemoryApp() as app:

        @app.task
        def work(n: int) -> None: ...

        handle = work.submit_sync(1)
        app.work_sync()
        task, ended = app.get_sync(handle.task_id), app.ended_sync(handle.task_id)
        (listed,) = app.list_sync().tasks
        assert task == ended == listed
        assert task is not None
        assert (task.payload, task.result) == ({"n": 1}, None)
        assert app.get_sync("018f5e2a-7c3b-7d10-8a2e-5b6c7d8e9f01") is None


def test_what_cannot_be_decoded_is_an_error_when_it_is_read() -> None:
    class Broken:
        def encode(self, value: object) -> object:
            return value

        def decode(self, value: object) -> object:  # noqa: ARG002
            raise OSError("no")

    coded = msgspec.json.encode({"$codec": "mine", "data": 1})
    task = readable(stored(payload=coded, result=coded), {})
    assert task.type == "email"
    with pytest.raises(UnknownCodec, match="no codec 'mine' here"):
        _ = task.payload
    with pytest.raises(InvalidResult, match="The codec mine cannot decode"):
        _ = readable(stored(result=coded), {"mine": Broken()}).result


async def test_every_name_of_the_specification_is_there() -> None:
    async with Fairlane("sqlite://") as app:

        @app.task
        async def work() -> None: ...

        task = await app.get((await work.submit()).task_id)
    assert task is not None
    for name in ("status", "priority", "timeout_seconds", "required_capabilities", "parameters"):
        assert hasattr(task, name)
