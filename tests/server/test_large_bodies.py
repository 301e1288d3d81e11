"""Large bodies: cut into items, and bounded where they hold many values."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.core import limits
from fairlane.core.ids import new_id
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.server import large_bodies
from fairlane.server.errors import HttpError, InvalidJson
from fairlane.server.large_bodies import (
    CUTS_LISTS,
    LARGE_BYTES,
    PART_BYTES,
    items_of,
    list_body,
)
from fairlane.server.operations import BATCH_BYTES, BODY_BYTES
from fairlane.server.routes.tasks_submit import OPTIONS_BYTES
from fairlane.wire.submission import BatchRequest
from fairlane.wire.worker_protocol import Heartbeat
from fairlane.wire.worker_protocol_bulk import EndedRuns
from tests.server.kit import Api, refused, told
from tests.server.security.kit import scene

BATCH = list_body(BatchRequest)
ENDED = list_body(EndedRuns)
PADDING = "x" * LARGE_BYTES
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=4)),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=5,
)


def cut(text: bytes, shape: Any = BATCH) -> list[bytes]:
    return [bytes(item) for item in items_of(text, shape)]


def test_msgspec_says_where_a_value_ends() -> None:
    assert CUTS_LISTS


def test_only_lists_are_cut() -> None:
    assert list_body(Heartbeat) is None
    assert (BATCH is not None, ENDED is not None) == (True, True)


@given(st.lists(values, max_size=5), st.sampled_from([None, 1]), st.booleans())
def test_items_are_cut_out_as_they_were_sent(items: list[Any], indent: int, unknown: bool) -> None:
    body = json.dumps({"results": items, **({"more": items} if unknown else {})}, indent=indent)
    assert [json.loads(item) for item in cut(body.encode(), ENDED)] == items


@given(st.text(alphabet='{}[]",: tasks1', max_size=20))
def test_what_is_not_json_is_refused(text: str) -> None:
    body = text.encode()
    try:
        msgspec.json.decode(body, type=BatchRequest)
    except msgspec.MsgspecError:
        with pytest.raises(HttpError):
            cut(body)
    else:
        cut(body)


@pytest.mark.parametrize(
    "body",
    [
        '{"tasks":[1,]}',
        '{"tasks":[1 2]}',
        '{"tasks":[1]',
        '{"tasks":[1]} x',
        '{"tasks":[}',
        '{"tasks"',
        "[",
    ],
)
def test_the_reason_is_that_it_is_not_json(body: str) -> None:
    with pytest.raises(InvalidJson):
        cut(body.encode())


def test_an_item_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_bodies, "ITEM_BYTES", 10)
    assert cut(b'{"tasks":["12345678"]}') == [b'"12345678"']
    with pytest.raises(HttpError, match="more than 10 bytes"):
        cut(b'{"tasks":["123456789"]}')


async def test_large_batches_over_http(api: Api) -> None:
    task = {"task_type": "t", "parameters": {"data": PADDING, "é": "\u2028"}}
    batch = {"tasks": [task] * 3}
    answer = await api.post("/api/v1/tasks/batch", batch, 201)
    stored = [await api.world.task(each["task_id"]) for each in answer["tasks"]]
    assert [json.loads(each.payload) for each in stored] == [task["parameters"]] * 3
    bad = {"tasks": [task, {**task, "queue": "no queue"}, {**task, "more": 1}]}
    reply = await api.ask("POST", "/api/v1/tasks/batch", bad)
    assert [each["index"] for each in refused(reply, 422, "invalid_batch")["errors"]] == [1, 2]
    refused(await api.ask("POST", "/api/v1/tasks/batch", {**batch, "a": 1}), 422, "invalid_request")
    twice = json.dumps(batch)[:-1].encode() + b"," + json.dumps(batch)[1:].encode()
    refused(await api.ask("POST", "/api/v1/tasks/batch", twice), 422, "invalid_request")
    refused(
        await api.ask("POST", "/api/v1/tasks/batch", {"tasks": PADDING}), 422, "invalid_request"
    )
    refused(
        await api.ask("POST", "/api/v1/tasks/batch", {"other": PADDING}), 422, "invalid_request"
    )
    refused(
        await api.ask("POST", "/api/v1/tasks/batch", json.dumps(batch)[:-1].encode()),
        400,
        "invalid_json",
    )


async def test_large_batches_of_results_over_http(api: Api) -> None:
    place = await scene(api.world)
    path = f"/internal/workers/{place.worker}/results"
    run = {"task_id": place.held, "attempt": 1, "status": "completed", "result": PADDING}
    wrong = {"results": [run, {**run, "attempt": "one"}], "unknown": 1}
    reply = await api.ask("POST", path, wrong)
    refused(reply, 422, "invalid_request")
    assert "$.results[1].attempt" in reply.body.decode()
    ended = {"results": [run, {**run, "task_id": new_id()}], "unknown": 1}
    assert told(await api.ask("POST", path, ended), 200)["verdicts"] == ["applied", "missing"]
    assert (await api.world.task(place.held)).result == json.dumps(PADDING).encode()


async def test_results_that_are_handled_in_parts(api: Api) -> None:
    worker = (await api.post("/internal/workers/register", {}))["worker_id"]
    ids = await api.world.submit_all([new_task("t", max_retries=0) for _ in range(20)])
    claimed = await api.world.claim(worker, 20)
    path = f"/internal/workers/{worker}/results"
    runs: list[dict[str, Any]] = [
        {
            "task_id": each.task_id,
            "attempt": 1,
            "status": "completed" if n % 2 else "failed",
            "result": f"{n}" + "x" * PART_BYTES,
            "error": {"message": f"{n}", "traceback": "t" * 40_000},
        }
        for n, each in enumerate(claimed)
    ]
    wrong = [*runs, {**runs[0], "attempt": "one"}]
    reply = await api.ask("POST", path, {"results": wrong})
    refused(reply, 422, "invalid_request")
    assert "$.results[20].attempt" in reply.body.decode()
    assert await api.world.census() == {State.EXECUTING: 20}
    body = {"results": [*runs, runs[1], {**runs[0], "task_id": new_id()}]}
    answer = told(await api.ask("POST", path, body), 200)
    assert answer["verdicts"] == ["applied"] * 21 + ["missing"]
    moves = [None if move is None else move["verb"] for move in answer["moves"]]
    assert moves[:20] == ["dead_letter", "complete"] * 10
    stored = [await api.world.task(each.task_id) for each in claimed]
    assert sorted(task.task_id for task in stored) == sorted(ids)
    for n, task in enumerate(stored):
        if n % 2:
            assert task.result == json.dumps(f"{n}" + "x" * PART_BYTES).encode()
        else:
            assert task.error is not None
            assert task.error.message == f"{n}"


async def test_what_is_not_payload_has_a_largest_size(api: Api) -> None:
    tags = {f"{n:03}" + "k" * 200: "v" * 200 for n in range(limits.TAGS)}
    task = {"task_type": "t", "tags": tags, "parameters": {"data": PADDING}}
    fit = OPTIONS_BYTES // len(json.dumps({**task, "parameters": {}}))
    path = "/api/v1/tasks/batch"
    reply = await api.ask("POST", path, {"tasks": [{**task, "parameters": {}}] * (fit + 1)})
    refused(reply, 413, "body_too_large")
    assert await api.world.census() == {}
    await api.post(path, {"tasks": [task] * (fit // 2)}, 201)


async def test_large_bodies_that_are_not_json(api: Api) -> None:
    for body in (b"[" * BODY_BYTES, b'{"a":' * 200_000, b'"\\ud800' + b"x" * LARGE_BYTES + b'"'):
        for path in ("/api/v1/tasks", "/api/v1/control"):
            reply = await api.ask("POST", path, body)
            assert reply.status in {400, 422}, reply.body


async def test_fields_with_many_values_have_a_largest_size(api: Api) -> None:
    many = ["ab"] * 200_000
    reply = await api.ask("POST", "/api/v1/tasks", {"task_type": "t", "depends_on": many})
    refused(reply, 413, "body_too_large")
    reply = await api.ask("POST", "/api/v1/tasks/lookup", {"task_ids": many})
    refused(reply, 413, "body_too_large")
    batch = {"tasks": [{"task_type": "t", "depends_on": many}]}
    reply = await api.ask("POST", "/api/v1/tasks/batch", batch)
    (error,) = refused(reply, 422, "invalid_batch")["errors"]
    assert error["code"] == "body_too_large"


async def test_a_list_has_a_largest_number_of_items(api: Api) -> None:
    body = b'{"tasks":[' + b",".join([b"{}"] * (LARGE_BYTES // 2)) + b"]}"
    reply = await api.ask("POST", "/api/v1/tasks/batch", body)
    refused(reply, 422, "batch_too_large")
    assert len(body) < BATCH_BYTES
    assert f"{limits.SUBMIT_BATCH:,}" in reply.body.decode()
