"""`/ws` as a protocol: subscriptions, wrong messages, clients that do not read, the end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlane.core.errors import StoreUnavailable
from fairlane.core.ids import new_id
from fairlane.core.submission import new_task
from fairlane.server.stream import hub
from fairlane.server.stream.clients import MOST_BYTES
from fairlane.server.stream.reader import Stretch
from tests.conftest import Servers
from tests.fixtures.stores import opened
from tests.server.http.kit import SECONDS
from tests.server.kit import CALM, Api, refused, serving
from tests.server.stream.kit import caught_up, frame, knock, listening, upgraded
from tests.server.workers import until


async def test_subscriptions(api: Api) -> None:
    world = api.world
    worker = await world.worker()
    async with listening(api) as listener:
        for wanted, heard in [
            ({}, ["a", "a", "b", "b"]),
            ({"subscribe": ["task.submitted"]}, ["a", "b"]),
            ({"queues": ["b"]}, ["b", "b"]),
            ({"queues": ["a", "c"], "subscribe": ["task.cancelled", "worker.draining"]}, ["a"]),
            ({"task_ids": [new_id()]}, []),
        ]:
            await listener.subscribe(**wanted)
            listener.heard.clear()
            for queue in ("a", "b"):
                task_id = await world.submit(queue=queue)
                await world.run(world.ops.cancel([task_id]))
            await caught_up(api)
            await listener.subscribe(subscribe=["worker.joined"])
            told = [event["data"].get("queue") for event in listener.heard[:-1]]
            assert told == heard, wanted
        one = await world.submit()
        await caught_up(api)
        await listener.subscribe(task_ids=[one, *(new_id() for _ in range(999))])
        await world.submit()
        await world.run(world.ops.forget(worker))  # about no task, and not asked for by name
        await world.run(world.ops.cancel([one]))
        await listener.until("task.cancelled")
    assert listener.told()[-1] == ("task.cancelled", one)


MANY = [new_id() for _ in range(1_001)]

WRONG: dict[str, tuple[Any, int, str]] = {
    "not JSON": ("subscribe!", 1003, "invalid_json"),
    "nothing": ("", 1003, "invalid_json"),
    "a lone surrogate": ('{"queues": ["\\ud800"]}', 1008, "invalid_request"),
    "binary": (b"{}", 1003, "invalid_json"),
    "a list": ("[]", 1008, "invalid_request"),
    "an unknown type": ('{"subscribe": ["task.exploded"]}', 1008, "invalid_request"),
    "a notice": ('{"subscribe": ["reset"]}', 1008, "invalid_request"),
    "an unknown field": ('{"subscribe": [], "token": "x"}', 1008, "invalid_request"),
    "null": ('{"queues": null}', 1008, "invalid_request"),
    "numbers": ('{"task_ids": [1]}', 1008, "invalid_request"),
    "too many tasks": (json.dumps({"task_ids": MANY}), 1008, "invalid_request"),
    "too many queues": (json.dumps({"queues": ["q"] * 101}), 1008, "invalid_request"),
    "a long name": (json.dumps({"queues": ["q" * 256]}), 1008, "invalid_request"),
    "too deep": ('{"queues": ' + "[" * 20_000 + "]" * 20_000 + "}", 1008, "invalid_request"),
}


@pytest.mark.parametrize("name", WRONG)
async def test_wrong_messages(name: str, api: Api) -> None:
    message, code, error = WRONG[name]
    async with listening(api) as listener:
        await listener.socket.send(message)
        closed, reason = await listener.closed()
    assert (closed, listener.heard[-1]["type"]) == (code, "error")
    assert listener.heard[-1]["data"]["code"] == error
    assert reason
    assert (await api.ask("GET", "/healthz")).status == 200


@pytest.mark.parametrize("size", [65_537, 10_000_000])
async def test_large_messages(size: int, api: Api) -> None:
    async with listening(api) as listener:
        with suppress(ConnectionError):
            await listener.socket.send("x" * size)
        code, _ = await listener.closed()
    assert code == 1009
    await until(lambda: api.services.hub.listening == 0)


async def test_too_many_messages(api: Api) -> None:
    async with listening(api) as listener:
        for _ in range(150):
            await listener.socket.send("{}")
        code, _ = await listener.closed()
    assert (code, listener.heard[-1]["data"]["code"]) == (1008, "too_many_requests")


async def test_what_is_no_websocket(api: Api) -> None:
    client, reply = await upgraded(api)
    assert reply.status == 101
    await client.send(b"\x81\x02{}")  # not masked
    assert b"\x03\xea" in await client.closed()  # 1002
    client, _ = await upgraded(api)
    for _ in range(200):
        await client.send(frame(0x1, fin=False) if _ == 0 else frame(0x0, fin=False))
    assert b"\x03\xf1" in await client.closed()  # 1009
    await until(lambda: api.services.hub.listening == 0)
    client, reply = await upgraded(api, x_long="x" * 9_000)
    refused(reply, 431, "headers_too_large")
    assert await client.closed() == b""


@pytest.mark.parametrize(
    "frames",
    [
        frame(0x1, b"\xff"),
        frame(0x1, b"a", fin=False) + frame(0x0, b"\xc3"),
        frame(0x8, b"\x03\xe8\xff"),
    ],
    ids=["whole", "fragments", "close"],
)
async def test_what_is_not_utf8(api: Api, frames: bytes, caplog: pytest.LogCaptureFixture) -> None:
    client, _ = await upgraded(api)
    await client.send(frames)
    assert b"\x03\xef" in await client.closed()  # 1007
    await until(lambda: api.services.hub.listening == 0)
    assert not any(record.exc_info for record in caplog.records)


async def test_refused_before_the_handshake(api: Api) -> None:
    refused(await knock(api, "/ws?cursor=nonsense"), 400, "invalid_cursor")
    refused(await knock(api, "/ws?cursor=" + "1" * 65), 422, "invalid_request")
    refused(await knock(api, "/ws?type=task.exploded"), 422, "invalid_request")
    refused(await knock(api, "/ws?token=x"), 422, "invalid_request")
    refused(await knock(api, "/wss"), 404, "not_found")
    refused(await knock(api, "/api/v1/tasks"), 404, "not_found")
    refused(await knock(api, "http://a/wss"), 421, "wrong_host")
    refused(await api.ask("GET", "/ws"), 404, "not_found")
    assert api.services.hub.listening == 0


@pytest.fixture
async def small(servers: Servers, tmp_path: Path) -> AsyncIterator[Api]:
    """A server that not many may listen to."""
    config = msgspec.structs.replace(CALM, listeners=2)
    async with opened("sqlite-memory", servers, tmp_path) as world, serving(world, config) as api:
        yield api


async def test_not_too_many_listen(small: Api) -> None:
    async with listening(small), listening(small):
        reply = await knock(small)
        refused(reply, 503, "busy")
        assert reply.headers["retry-after"]
        events = await small.ask("GET", "/api/v1/events", accept="text/event-stream")
        refused(events, 503, "busy")
    await until(lambda: small.services.hub.listening == 0)
    async with listening(small):
        pass


async def test_one_that_does_not_read_is_dropped_and_harms_nobody(api: Api) -> None:
    world = api.world
    client, reply = await upgraded(api)
    assert reply.status == 101
    await until(lambda: api.services.hub.listening == 1)
    async with listening(api, query="type=task.cancelled") as other:
        # More than the buffers of two sockets, and what may wait, can hold.
        tasks = [new_task("t" * 250, queue="q" * 250) for _ in range(500)]
        submitted = 0
        while api.services.hub.listening > 1:
            await world.submit_all([new_task(each.type, queue=each.queue) for each in tasks])
            submitted += len(tasks)
            assert submitted * 500 < 40 * MOST_BYTES
            await asyncio.sleep(0.06)  # lets the hub look
        task_id = await world.submit()
        await world.run(world.ops.cancel([task_id]))
        await other.until("task.cancelled")
    async with asyncio.timeout(SECONDS):
        rest = await client.closed()  # all that it was sent: the end says why
    assert b"\x03\xf5Events were not read fast enough" in rest[-200:]  # 1013


async def test_pings_that_nobody_reads_the_answers_to(api: Api) -> None:
    client, _ = await upgraded(api)
    flood = frame(0x9, b"x" * 125) * 1_000
    sent = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(2):
            while sent < 100_000_000:
                client._writer.write(flood)
                await client._writer.drain()
                sent += len(flood)
    client._writer.transport.abort()
    assert sent < 50_000_000  # what lies in the system's own buffers


async def test_a_server_that_stops_says_so(api: Api) -> None:
    async with listening(api) as listener:
        api.stop.set()
        code, _ = await listener.closed()
    assert code == 1012


async def test_the_journal_is_read_only_while_somebody_listens(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "CURSOR_SECONDS", 0.05)
    async with listening(api, query="type=worker.dead") as listener:
        await api.world.submit()
        notice = await listener.until("cursor")  # nothing that it wants, but it has come further
    assert [event["type"] for event in listener.heard] == ["ready", "cursor"]
    await until(lambda: api.services.hub.listening == 0)
    assert api.services.hub._work == []
    await api.world.submit()
    async with listening(api, notice["cursor"]) as listener:
        assert [type for type, _ in listener.told()] == ["task.submitted"]


async def test_clients_stay_while_the_store_is_away(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = api.services.hub.reader
    read, failures = reader.read, 0

    async def away(*args: Any, **options: Any) -> Stretch:
        nonlocal failures
        failures += 1
        if failures < 3:
            raise StoreUnavailable
        return await read(*args, **options)

    async with listening(api) as listener:
        monkeypatch.setattr(reader, "read", away)
        task_id = await api.world.submit()
        await listener.until("task.submitted")
    assert listener.told() == [("task.submitted", task_id)]
    assert failures >= 3
