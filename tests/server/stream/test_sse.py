"""`/api/v1/events`: server-sent events, and pages of the same."""

from __future__ import annotations

import json
from typing import Any

from tests.server.http.kit import Client
from tests.server.kit import Api, refused
from tests.server.stream.kit import Stream
from tests.server.workers import until

PATH = "/api/v1/events"


async def streaming(api: Api, query: str = "", **headers: str) -> tuple[Client, Stream]:
    client = await api.connect()
    request = api.request("GET", PATH + query, accept="text/event-stream", **headers)
    reply = await client.ask(request)
    assert (reply.status, reply.headers["content-type"]) == (200, "text/event-stream")
    assert reply.headers["cache-control"] == "no-store"
    return client, Stream(client)


async def test_events_and_coming_back(served: Api) -> None:
    client, stream = await streaming(served, "?type=task.submitted&queue=a")
    assert (await stream.next())["event"] == "ready"
    await served.world.submit(queue="b")
    first = await served.world.submit(queue="a")
    event = await stream.next()
    told: dict[str, Any] = json.loads(event["data"])
    assert (event["event"], told["type"]) == ("task.submitted", "task.submitted")
    assert (told["data"]["task_id"], told["cursor"]) == (first, event["id"])
    await client.close()
    await until(lambda: served.services.hub.listening == 0)
    second = await served.world.submit(queue="a")
    _, stream = await streaming(served, "?type=task.submitted&queue=a", last_event_id=event["id"])
    event = await stream.next()
    assert json.loads(event["data"])["data"]["task_id"] == second


async def test_pages(served: Api) -> None:
    now = await served.get(PATH)
    assert (now["events"], now["reset"]) == ([], False)
    task_ids = [await served.world.submit() for _ in range(5)]
    found: list[str] = []
    cursor = now["cursor"]
    while len(found) < 5:
        page = await served.get(PATH, cursor=cursor, limit=2)
        found += [event["data"]["task_id"] for event in page["events"]]
        assert cursor != page["cursor"]
        cursor = page["cursor"]
    assert found == task_ids
    page = await served.get(PATH, cursor=now["cursor"], task_id=task_ids[3])
    assert [event["data"]["task_id"] for event in page["events"]] == [task_ids[3]]


async def test_what_does_not_fit(api: Api) -> None:
    stream = {"accept": "text/event-stream"}
    refused(await api.ask("GET", f"{PATH}?cursor=nonsense", **stream), 400, "invalid_cursor")
    refused(await api.ask("GET", PATH, last_event_id="x", **stream), 400, "invalid_cursor")
    refused(await api.ask("GET", PATH, last_event_id="1" * 65, **stream), 422, "invalid_request")
    refused(await api.ask("GET", f"{PATH}?type=reset"), 422, "invalid_request")
    refused(await api.ask("GET", f"{PATH}?limit=0"), 422, "invalid_request")
    head = await api.ask("HEAD", PATH, **stream)
    assert (head.status, head.headers["content-type"]) == (200, "text/event-stream")
    assert api.services.hub.listening == 0


async def test_a_server_that_stops_ends_it(api: Api) -> None:
    client, stream = await streaming(api)
    await stream.next()
    api.stop.set()
    assert (await client.closed()).endswith(b"0\r\n\r\n")
