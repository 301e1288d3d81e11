"""Codecs between an application that submits and a worker that runs, on every engine."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import msgspec
import pytest

from fairlane import Fairlane, State, TaskFailed
from tests.fixtures.stores import World
from tests.worker import isolated
from tests.worker.isolated import TARGET
from tests.worker.kit import PATIENCE, application, ended, working

IMAGE = bytes(range(256))


class Msgpack:
    """Values with bytes, in text."""

    def encode(self, value: Any) -> str:
        return b64encode(msgspec.msgpack.encode(value)).decode()

    def decode(self, value: Any) -> Any:
        return msgspec.msgpack.decode(b64decode(value, validate=True))


@pytest.fixture
def submitting(world: World) -> Fairlane:
    """An application with a codec, in another process than the worker."""
    app = application(world)
    app.codec("msgpack", Msgpack())

    @app.task(name="turn", codec="msgpack", max_retries=5)
    async def turn(image: bytes) -> dict[int, bytes]:
        raise AssertionError(image)

    return app


async def test_a_worker_decodes_arguments_and_encodes_results(
    submitting: Fairlane, app: Fairlane
) -> None:
    app.codec("msgpack", Msgpack())

    @app.task(name="turn", codec="msgpack")
    async def turn(image: bytes) -> dict[int, bytes]:
        return {0: image[::-1], 1: image}

    async with working(app):
        handle = await submitting.tasks["turn"].submit(IMAGE)
        assert await handle.result(PATIENCE) == {0: IMAGE[::-1], 1: IMAGE}
    task = await submitting.get(handle.task_id)
    assert task is not None
    assert msgspec.json.decode(task.stored.payload)["$codec"] == "msgpack"
    assert msgspec.json.decode(task.stored.result or b"")["$codec"] == "msgpack"


async def test_a_worker_without_the_codec_fails_the_attempt_for_good(
    submitting: Fairlane, app: Fairlane
) -> None:
    """The reason is clear, and the worker goes on."""

    @app.task(name="turn")
    async def turn(image: Any) -> None:
        raise AssertionError(image)

    @app.task(name="other")
    async def other() -> int:
        return 1

    async with working(app):
        handle = await submitting.tasks["turn"].submit(IMAGE)
        with pytest.raises(TaskFailed, match="no codec 'msgpack' here"):
            await handle.result(PATIENCE)
        assert await (await other.submit()).result(PATIENCE) == 1
        task = await ended(app, handle.task_id)
    assert task.error is not None
    assert (task.status, task.error.code, task.attempt) == (State.FAILED, "INVALID_PAYLOAD", 1)


async def test_a_process_of_its_own_has_the_codec(memory: World) -> None:
    isolated.app._connection.adopt(memory.backend)
    try:
        async with working(isolated.app, target=TARGET):
            handle = await isolated.reverse.submit(IMAGE)
            assert await handle.result(PATIENCE) == IMAGE[::-1]
    finally:
        await isolated.app.aclose()
