"""Codecs: other forms than JSON at the edge of a task."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any

import msgspec
import pytest

from fairlane import Fairlane, InvalidInput, State, TaskFailed, Unique
from fairlane.core.errors import InvalidArguments, InvalidHandler, InvalidResult, UnknownCodec
from fairlane.runtime.codecs import Codec


class Msgpack:
    """Values with bytes, in text."""

    def encode(self, value: Any) -> str:
        return b64encode(msgspec.msgpack.encode(value)).decode()

    def decode(self, value: Any) -> Any:
        return msgspec.msgpack.decode(b64decode(value, validate=True))


class Refusing:
    """Can do nothing."""

    def encode(self, value: Any) -> Any:
        raise OSError(f"no {type(value).__name__}")

    def decode(self, value: Any) -> Any:
        raise OSError(f"no {type(value).__name__}")


@pytest.fixture
def app() -> Fairlane:
    app = Fairlane("sqlite://")
    app.codec("msgpack", Msgpack())
    return app


async def test_arguments_and_results_pass_through_it(app: Fairlane) -> None:
    @app.task(codec="msgpack")
    async def cut(image: bytes, at: int = 2) -> dict[int, bytes]:
        return {0: image[:at], 1: image[at:]}

    with app.inline():
        handle = await cut.submit(b"\x00\xff\x01", at=1)
        task = await app.get(handle.task_id)
        assert task is not None
        stored = task.stored
        assert json.loads(stored.payload).keys() == json.loads(stored.result or b"").keys()
        assert json.loads(stored.payload)["$codec"] == "msgpack"
        assert (task.payload["at"], task.result) == (1, {0: b"\x00", 1: b"\xff\x01"})
        assert await handle.result() == {0: b"\x00", 1: b"\xff\x01"}
        assert await (await cut.submit(b"abc")).result() == {0: b"ab", 1: b"c"}


async def test_a_result_that_only_looks_encoded_is_read_as_it_is(app: Fairlane) -> None:
    @app.task
    async def show() -> dict[str, object]:
        return {"$codec": "unknown", "data": 1}

    with app.inline():
        assert await (await show.submit()).result() == {"$codec": "unknown", "data": 1}


async def test_nothing_is_still_nothing(app: Fairlane) -> None:
    @app.task(codec="msgpack")
    async def forget(image: bytes) -> None:
        assert image

    with app.inline():
        handle = await forget.submit(b"x")
        task = await app.get(handle.task_id)
    assert task is not None
    assert (task.stored.result, task.result) == (b"null", None)


async def test_json_is_accepted_all_the_same(app: Fairlane) -> None:
    """From those who do not know codecs: the command line, or a request."""

    @app.task(codec="msgpack")
    async def double(n: int) -> int:
        return 2 * n

    with app.inline():
        plain = double.prepare(3)
        task = msgspec.structs.replace(plain.task, payload=b'{"n":4}')
        handle = await app.submit(msgspec.structs.replace(plain, task=task))
        assert await handle.result() == 8


def test_one_that_nobody_knows_is_refused_where_it_is_named(app: Fairlane) -> None:
    with pytest.raises(UnknownCodec, match=r"no codec 'protobuf' here.*Registered: msgpack"):
        app.task(codec="protobuf")
    with pytest.raises(UnknownCodec):
        app.task(codec=["msgpack"])  # type: ignore[call-overload]
    assert not app.tasks


@pytest.mark.parametrize(
    ("name", "codec", "why"),
    [
        ("msgpack", Msgpack(), "Two codecs"),
        ("my codec", Msgpack(), "cannot name a codec"),
        ("half", object(), "needs the methods encode and decode"),
    ],
)
def test_registering_is_checked(app: Fairlane, name: str, codec: Codec, why: str) -> None:
    with pytest.raises(InvalidHandler, match=why):
        app.codec(name, codec)
    assert set(app.codecs) == {"msgpack"}


async def test_a_worker_that_does_not_know_it_fails_the_task_for_good(app: Fairlane) -> None:
    @app.task(codec="msgpack", max_retries=5)
    async def show(image: bytes) -> None:
        raise AssertionError(image)

    call = show.prepare(b"x")
    app.codecs.clear()
    with app.inline():
        handle = await app.submit(call)
        assert await handle.status() is State.FAILED
        with pytest.raises(TaskFailed, match="no codec 'msgpack' here"):
            await handle.result()


@pytest.mark.parametrize(
    "payload", [b'{"$codec":"msgpack","data":"?"}', b'{"$codec":"msgpack","data":"gQE="}']
)
async def test_a_payload_that_it_cannot_decode_fails_for_good(
    app: Fairlane, payload: bytes
) -> None:
    @app.task(codec="msgpack")
    async def show(image: bytes) -> None:
        raise AssertionError(image)

    call = show.prepare(b"x")
    broken = msgspec.structs.replace(call.task, payload=payload)
    with app.inline():
        handle = await app.submit(msgspec.structs.replace(call, task=broken))
        assert await handle.status() is State.FAILED
        task = await app.get(handle.task_id)
    assert task is not None
    assert task.error is not None
    assert task.error.code == "INVALID_PAYLOAD"
    assert "The codec msgpack cannot decode the payload" in task.error.message


async def test_what_it_cannot_encode(app: Fairlane) -> None:
    app.codec("refusing", Refusing())

    @app.task(codec="refusing")
    async def refuse(n: int) -> int:
        return n

    with pytest.raises(
        InvalidArguments, match="codec refusing cannot encode the arguments: no dict"
    ):
        await refuse.submit(1)

    @app.task(codec="msgpack")
    async def late() -> object:
        return object()

    with app.inline():
        handle = await late.submit()
        with pytest.raises(TaskFailed, match="cannot be encoded"):
            await handle.result()
        with pytest.raises(InvalidInput, match="unexpected keyword"):
            await late.submit(n=1)  # type: ignore[call-arg]


async def test_a_result_that_cannot_be_read_here(app: Fairlane) -> None:
    @app.task(codec="msgpack")
    async def show() -> bytes:
        return b"\x00"

    with app.inline():
        handle = await show.submit()
        app.codecs["msgpack"] = Refusing()
        with pytest.raises(InvalidResult, match="codec msgpack cannot decode the result"):
            await handle.result()
        app.codecs.clear()
        with pytest.raises(UnknownCodec, match="Registered: none"):
            await handle.result()


def test_it_cannot_be_unique_by_what_is_encoded(app: Fairlane) -> None:
    """Or else tasks with other arguments would count as duplicates."""
    by_name = Unique(arguments=("n",))
    with pytest.raises(InvalidHandler, match="unique by chosen arguments"):

        @app.task(codec="msgpack", unique=by_name)
        async def refused(n: int) -> None: ...

    @app.task(codec="msgpack", unique=True)
    async def show(n: int) -> None: ...

    with pytest.raises(InvalidHandler, match="unique by chosen arguments"):
        show.options(unique=by_name)
    first, second, other = (app.submit_sync(show.prepare(n)) for n in (1, 1, 2))
    assert first.task_id == second.task_id != other.task_id
