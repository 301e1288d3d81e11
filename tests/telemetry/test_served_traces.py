"""Traces through a server: what REST submits and what workers over HTTP do belongs together."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry import trace

from fairlane import Fairlane
from tests.fixtures.remote import remote
from tests.server.conftest import api
from tests.server.kit import Api, refused
from tests.telemetry.kept import ELSEWHERE, Kept, is_under, kept, trace_of
from tests.worker.kit import ended, working

__all__ = ["api", "kept"]

TASK: dict[str, Any] = {"task_type": "work"}
OTHER = "00-" + "12" * 16 + "-" + "34" * 8 + "-01"
SUBMISSIONS = {
    "one": ("/api/v1/tasks", TASK),
    "batch": ("/api/v1/tasks/batch", {"tasks": [TASK]}),
    "001": ("/api/tasks", {"type": "work", "payload": {}}),
}


async def only_task(api: Api) -> dict[str, Any]:
    (task,) = (await api.get("/api/v1/tasks"))["tasks"]
    assert isinstance(task, dict)
    return task


@pytest.mark.parametrize("how", SUBMISSIONS)
async def test_a_submission_goes_on_with_the_trace_of_its_request(
    api: Api, kept: Kept, how: str
) -> None:
    path, body = SUBMISSIONS[how]
    await api.post(path, body, 201, traceparent=ELSEWHERE)
    submit = kept.one("submit work")
    assert (trace_of(submit), submit.parent and submit.parent.span_id) == (
        "ab" * 16,
        int("cd" * 8, 16),
    )
    task = await only_task(api)
    assert submit.context is not None
    assert task["traceparent"] == f"00-{'ab' * 16}-{submit.context.span_id:016x}-01"
    assert task["trace_id"] == "ab" * 16


async def test_a_task_may_name_a_trace_of_its_own(api: Api, kept: Kept) -> None:
    body = {**TASK, "traceparent": OTHER}
    answer = await api.post("/api/v1/tasks", body, 201, traceparent=ELSEWHERE)
    assert answer["trace_id"] == trace_of(kept.one("submit work")) == "12" * 16


@pytest.mark.parametrize(
    "nonsense", ["", "00", ELSEWHERE.upper(), "ff" + ELSEWHERE[2:], ELSEWHERE + "-x", "\xe9" * 55]
)
async def test_a_header_that_makes_no_sense_is_passed_over(
    api: Api, kept: Kept, nonsense: str
) -> None:
    answer = await api.post("/api/v1/tasks", TASK, 201, traceparent=nonsense)
    submit = kept.one("submit work")
    assert submit.parent is None
    assert answer["trace_id"] == trace_of(submit) != "ab" * 16


async def test_a_refused_submission_is_a_span_that_failed(api: Api, kept: Kept) -> None:
    await api.post("/api/v1/tasks", {**TASK, "idempotency_key": "k"}, 201)
    other = {"task_type": "work", "parameters": {"n": 2}, "idempotency_key": "k"}
    refused(await api.ask("POST", "/api/v1/tasks", other), 422, "idempotency_conflict")
    refused(await api.ask("POST", "/api/v1/tasks", {}), 422, "invalid_type")  # never under way
    good, bad = kept.named("submit work")
    assert [span.status.is_ok for span in (good, bad)] == [True, False]
    assert (bad.attributes or {})["error.type"] == "IdempotencyConflict"


async def test_without_traces_the_header_travels_all_the_same(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker elsewhere may want to go on with it."""
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    answer = await api.post("/api/v1/tasks", TASK, 201, traceparent=ELSEWHERE)
    task = await only_task(api)
    assert (task["traceparent"], task["trace_id"]) == (ELSEWHERE, answer["trace_id"])
    assert answer["trace_id"] == "ab" * 16


async def test_a_worker_over_http_goes_on_with_the_trace(api: Api, kept: Kept) -> None:
    with remote(api.world.backend) as url:
        app = Fairlane(url)

        @app.task()
        async def work() -> None: ...

        answer = await api.post("/api/v1/tasks", TASK, 201, traceparent=ELSEWHERE)
        async with app, working(app):
            await ended(app, answer["task_id"])
    submit, claim, execute, settle = (
        kept.one(f"{step} work") for step in ("submit", "claim", "execute", "settle")
    )
    assert trace_of(submit) == "ab" * 16
    assert is_under(claim, submit)
    assert is_under(execute, claim)
    assert is_under(settle, execute)


async def test_an_application_over_http_and_its_server_are_in_one_trace(
    api: Api, kept: Kept
) -> None:
    with remote(api.world.backend) as url:
        app = Fairlane(url)

        @app.task()
        async def work() -> None: ...

        async with app, working(app):
            handle = await app.submit(work.prepare())
            await ended(app, handle.task_id)
    ours, theirs = sorted(kept.named("submit work"), key=lambda span: span.parent is not None)
    assert ours.parent is None
    assert is_under(theirs, ours)
    assert is_under(kept.one("claim work"), theirs)
    assert len({trace_of(kept.one(f"{step} work")) for step in ("execute", "settle")}) == 1
