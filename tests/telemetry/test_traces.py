"""Spans submit → claim → execute → settle, in one trace across processes; none when not wanted."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.trace import NoOpTracerProvider, SpanKind, StatusCode

from fairlane import Context, Fail, Fairlane, Retry
from fairlane.core.errors import FairlaneError
from fairlane.core.submission import new_task
from fairlane.telemetry import tracing
from fairlane.telemetry.observer import new_observer
from tests.cli.kit import start
from tests.fixtures.stores import World
from tests.telemetry.kept import ELSEWHERE, Kept, is_under, kept, trace_of
from tests.worker.conftest import app, memory, quick, world
from tests.worker.kit import ended, working

__all__ = ["app", "kept", "memory", "quick", "world"]


async def test_each_step_is_under_the_one_before(app: Fairlane, world: World, kept: Kept) -> None:
    @app.task()
    async def work() -> int:
        return 1

    async with working(app):
        handle = await app.submit(work.prepare())
        await ended(app, handle.task_id)
    submit, claim, execute, settle = (
        kept.one(f"{step} work") for step in ("submit", "claim", "execute", "settle")
    )
    assert submit.parent is None
    assert is_under(claim, submit)
    assert is_under(execute, claim)
    assert is_under(settle, execute)
    assert (submit.kind, execute.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert {span.status.status_code for span in (submit, execute, settle)} == {StatusCode.UNSET}
    for span in (submit, claim, execute, settle):
        assert span.attributes is not None
        assert span.attributes["messaging.message.id"] == handle.task_id
        assert span.start_time is not None
        assert span.end_time is not None
        assert span.start_time <= span.end_time
    task = await world.task(handle.task_id)
    assert task.trace_id == trace_of(submit)
    assert task.traceparent is not None
    assert task.traceparent.split("-")[1] == trace_of(submit)


async def test_attempts_are_branches_and_failures_show(
    quick: Fairlane, memory: World, kept: Kept
) -> None:
    @quick.task(max_retries=1)
    async def flaky(ctx: Context, password: str) -> None:
        if ctx.attempt == 1:
            raise Retry(f"not with {password}", after=0)
        raise Fail(f"never with {password}", code="NEVER")

    async with working(quick):
        handle = await quick.submit(flaky.prepare("hunter2"))
        await ended(quick, handle.task_id)
    submit = kept.one("submit flaky")
    claims, runs = kept.named("claim flaky"), kept.named("execute flaky")
    assert len(claims) == len(runs) == 2
    assert all(is_under(claim, submit) for claim in claims)
    told = [(span.status.status_code, (span.attributes or {})["error.type"]) for span in runs]
    assert told == [(StatusCode.ERROR, "RETRY"), (StatusCode.ERROR, "NEVER")]
    everything = [span.to_json() for name in set(kept.names()) for span in kept.named(name)]
    assert "hunter2" not in str(everything)


async def test_what_a_handler_does_is_part_of_its_run(
    quick: Fairlane, memory: World, kept: Kept
) -> None:
    tracer = trace.get_tracer("shop")

    @quick.task()
    async def child() -> None:
        with tracer.start_as_current_span("in a coroutine"):
            pass

    @quick.task()
    def parent(ctx: Context) -> str:
        with tracer.start_as_current_span("on a thread"):
            return ctx.submit_sync(child.prepare()).task_id

    async with working(quick):
        handle = await quick.submit(parent.prepare())
        await ended(quick, handle.task_id)
        await ended(quick, await handle.result())
    inner = kept.one("on a thread")
    assert is_under(inner, kept.one("execute parent"))
    assert is_under(kept.one("submit child"), inner)
    assert is_under(kept.one("in a coroutine"), kept.one("execute child"))
    assert len({trace_of(kept.one(name)) for name in kept.names()}) == 1


async def test_a_trace_that_was_named_is_gone_on_with(
    quick: Fairlane, memory: World, kept: Kept
) -> None:
    @quick.task()
    async def work() -> None: ...

    with trace.get_tracer("shop").start_as_current_span("something else"):
        named = await quick.submit(work.options(traceparent=ELSEWHERE).prepare())
    submit = kept.one("submit work")
    assert trace_of(submit) == "ab" * 16
    assert submit.parent is not None
    assert submit.parent.span_id == int("cd" * 8, 16)
    assert (await memory.task(named.task_id)).trace_id == "ab" * 16


@pytest.mark.parametrize("nonsense", ["not a traceparent", "00-" + "0" * 32 + "-1-01"])
async def test_a_trace_that_makes_no_sense_is_as_good_as_none(
    quick: Fairlane, memory: World, kept: Kept, nonsense: str
) -> None:
    @quick.task()
    async def work() -> None: ...

    task = new_task("work", {}, traceparent=nonsense)
    await memory.submit_all([task])
    async with working(quick):
        await ended(quick, task.task_id)
    claim = kept.one("claim work")
    assert claim.parent is None
    assert is_under(kept.one("execute work"), claim)


async def test_many_at_once_and_from_ordinary_code(
    quick: Fairlane, memory: World, kept: Kept
) -> None:
    @quick.task()
    async def work(n: int) -> None: ...

    await quick.submit_many(work.prepare(n) for n in range(3))
    quick.submit_many_sync([work.prepare(3)])
    assert kept.names() == ["submit work"] * 4
    assert len({trace_of(span) for span in kept.named("submit work")}) == 4


async def test_a_submission_that_fails_is_a_span_that_failed(
    quick: Fairlane, memory: World, kept: Kept
) -> None:
    @quick.task()
    async def work(n: int) -> None: ...

    first = work.options(idempotency_key="k").prepare(1)
    await quick.submit(first)
    with pytest.raises(FairlaneError):
        await quick.submit(work.options(idempotency_key="k").prepare(2))
    good, bad = kept.named("submit work")
    assert (good.status.status_code, bad.status.status_code) == (
        StatusCode.UNSET,
        StatusCode.ERROR,
    )


@pytest.mark.parametrize("provider", [None, NoOpTracerProvider()])
async def test_off_means_off(
    quick: Fairlane, memory: World, monkeypatch: pytest.MonkeyPatch, provider: object
) -> None:
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    assert tracing.spans() is None
    assert new_observer() is None

    @quick.task()
    async def work() -> None: ...

    handle = await quick.submit(work.prepare())
    task = await memory.task(handle.task_id)
    assert (task.traceparent, task.trace_id) == (None, handle.task_id.replace("-", ""))


def test_a_program_without_traces_does_not_even_import_them() -> None:
    program = """
import asyncio, sys
from fairlane import Fairlane
import fairlane.worker.worker
app = Fairlane("sqlite://")

@app.task()
async def work() -> None: ...

app.submit_sync(work.prepare())
print(any(name.startswith(("opentelemetry", "prometheus")) for name in sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "False\n"


TRACED = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from fairlane import Fairlane

provider = TracerProvider()
out = open("spans.jsonl", "a", buffering=1)
exporter = ConsoleSpanExporter(out=out, formatter=lambda span: span.to_json(indent=None) + "\\n")
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)

app = Fairlane()

@app.task()
async def work() -> None: ...
"""
SUBMIT = TRACED + "\nhandle = app.submit_sync(work.prepare())\nhandle.result_sync(30)\n"


def test_one_trace_across_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("shop.py").write_text(TRACED)
    worker = start("worker", "--app", "shop:app")
    try:
        subprocess.run([sys.executable, "-c", SUBMIT], check=True, timeout=60)
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.communicate(timeout=30)
    spans = {}
    for line in Path("spans.jsonl").read_text().splitlines():
        span = json.loads(line)
        spans[span["name"]] = span
    chain = ["submit work", "claim work", "execute work", "settle work"]
    assert sorted(spans) == sorted(chain)
    for above, below in pairwise(chain):
        assert spans[below]["parent_id"] == spans[above]["context"]["span_id"]
        assert spans[below]["context"]["trace_id"] == spans[above]["context"]["trace_id"]
