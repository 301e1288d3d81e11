"""`/internal/workers`: the worker protocol, for workers in any language."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

from msgspec import UNSET

from fairlane.core.errors import LeaseLost, WorkerGone
from fairlane.core.holdings import Run
from fairlane.core.leases import check_amount
from fairlane.core.model import Ask, Beat, Report, Start, Verdict, WorkerStatus
from fairlane.core.outcomes import Released
from fairlane.core.text import NAME_RULE, is_name, shown
from fairlane.server.errors import InvalidRequest, TaskNotFound
from fairlane.server.operations import BODY_BYTES, WORKER, Call, Operation
from fairlane.server.reports import RunReport, attempt_of
from fairlane.server.responses import Response
from fairlane.server.services import Services
from fairlane.server.tasks import task_id_of
from fairlane.server.workers import KnownWorker, check_owner, new_worker_id, owns
from fairlane.wire.worker_protocol import (
    POLL_INTERVAL_MS,
    Acknowledged,
    Deregistered,
    HandedTask,
    Heartbeat,
    HeartbeatReply,
    ListedRun,
    Poll,
    PollReply,
    Registered,
    Registration,
    ResultAcknowledged,
    RunResult,
    TaskProgress,
    TaskStart,
    line,
)

LEASE_SHARE: Final = 3
"""A poll waits for at most 1/3 of the worker's lease: the next poll counts as a heartbeat."""


async def register(services: Services, call: Call[Registration, None]) -> Response:
    """Register a worker. The response has its id."""
    body = call.body
    known = body.worker_id
    renews = known is not None and owns(known, call.identity)
    worker_id = known if renews and known else new_worker_id(call.identity, body.name)
    worker = body.worker(worker_id, services.config.start_within)
    await services.workers.check_room(call.identity, worker, known=renews)
    await services.run(services.ops.register(worker))
    services.workers.remember(worker)
    within = UNSET if worker.start_within is None else worker.start_within
    terms = (POLL_INTERVAL_MS, body.heartbeat_interval_ms, within)
    return Response(Registered(worker.worker_id, *terms))


async def poll(services: Services, call: Call[Poll, None]) -> Response:
    """Return tasks to run now. Waits for some, if the worker asks for that."""
    body, worker_id = call.body, caller(call)
    known = await services.workers.touch(worker_id)
    in_line = known.status is WorkerStatus.ACTIVE
    seconds = wait_seconds(services, known, body.wait_seconds)
    ask, repeats = _ask(body, worker_id, known), body.request_id is not None
    begins = known.start_within is None
    grant = await services.polls.take(
        ask, seconds, call.left, in_line=in_line, begins=begins, repeats=repeats
    )
    return Response(PollReply([HandedTask.of(task) for task in grant.tasks]))


async def start(services: Services, call: Call[TaskStart, None]) -> Response:
    """Record that a task starts now. Its timeout counts from here."""
    worker_id, task_id = caller(call), task_id_of(call.body.task_id)
    attempt = await _attempt(services, worker_id, task_id, call.body.attempt)
    op = services.ops.start(worker_id, [Start(task_id, attempt)])
    return await _acknowledge(services, worker_id, await services.run(op))


async def progress(services: Services, call: Call[TaskProgress, None]) -> Response:
    """Record the progress of a task."""
    worker_id, task_id, body = caller(call), task_id_of(call.body.task_id), call.body
    attempt = await _attempt(services, worker_id, task_id, body.attempt)
    report = Report(task_id, attempt, body.progress_percent, line(body.status_message))
    op = services.ops.progress(worker_id, [report])
    return await _acknowledge(services, worker_id, await services.run(op))


async def result(services: Services, call: Call[RunResult, None]) -> Response:
    """Record the result of a run. Reporting the same result twice is not an error."""
    worker_id, task_id, body = caller(call), task_id_of(call.body.task_id), call.body
    report = RunReport(
        worker_id, task_id, body.attempt, body.outcome(), body.execution_duration_seconds
    )
    settled = await services.reports.send(report)
    _check(settled.verdict)
    assert settled.state is not None
    await touch(services, worker_id)
    return Response(ResultAcknowledged(status=settled.state))


async def heartbeat(services: Services, call: Call[Heartbeat, None]) -> Response:
    """Record that a worker is alive. The response says whether to drain, and which runs to stop."""
    body, worker_id = call.body, caller(call)
    status = None if body.status is None else WorkerStatus(body.status)
    beat = Beat(worker_id, status=status, health=body.checked_health())
    tasks = body.checked_tasks()
    pulse = await services.workers.beat(beat)
    lost = pulse.let_go + await lost_runs(services, worker_id, tasks)
    return Response(
        HeartbeatReply(
            acknowledged=True,
            should_drain=pulse.status is WorkerStatus.DRAINING,
            cancelled=list(dict.fromkeys(task_id for task_id, _ in lost)),
        )
    )


async def lost_runs(
    services: Services, worker_id: str, tasks: Sequence[ListedRun] | None
) -> list[Run]:
    """Return which of the tasks that a worker lists it has lost."""
    if tasks is None:
        return []
    known = await services.workers.touch(worker_id)
    return await services.holdings.compare(worker_id, known, tasks)


async def deregister(services: Services, call: Call[None, None]) -> Response:
    """Remove a worker. Its tasks go to other workers, and lose no retry."""
    worker_id = caller(call)
    held = (await services.workers.find(worker_id)).current_tasks
    reports = [RunReport(worker_id, each, None, Released(), None) for each in held]
    settled = await asyncio.gather(*map(services.reports.send, reports))
    await services.run(services.ops.forget(worker_id))
    services.workers.forget(worker_id)
    return Response(Deregistered(released=sum(each.verdict is Verdict.APPLIED for each in settled)))


def wait_seconds(services: Services, known: KnownWorker, wanted: float) -> float:
    """Return how long a worker's call may wait for a task."""
    seconds = min(wanted, services.config.longest_wait, known.lease / LEASE_SHARE)
    if known.status is not WorkerStatus.ACTIVE:
        seconds = min(seconds, POLL_INTERVAL_MS / 1_000)
    return seconds


def caller(call: Call[Any, Any]) -> str:
    """Return the id of the calling worker. Raises WorkerGone if the id belongs to another token."""
    worker_id = call.path["worker_id"]
    check_owner(worker_id, call.identity)
    return worker_id


def _ask(body: Poll, worker_id: str, known: KnownWorker) -> Ask:
    capabilities = known.capabilities if body.capabilities is None else body.capabilities
    if body.capabilities is not None:
        check_amount(body.capabilities)
    check_names((*capabilities, *([] if body.request_id is None else [body.request_id])))
    return Ask(
        worker_id,
        body.request_id or "",  # without one, each claim gets a new id
        body.available_capacity,
        types=known.types,
        queues=known.queues,
        capabilities=capabilities,
    )


def check_names(names: Iterable[str]) -> None:
    """Raise InvalidRequest for an invalid name."""
    for name in names:
        if not is_name(name):
            raise InvalidRequest(
                f"A type, queue, capability or request id has {NAME_RULE}. Got {shown(name)}."
            )


async def _attempt(services: Services, worker_id: str, task_id: str, given: int | None) -> int:
    """Return the attempt that a worker means: its last one, if it does not say."""
    if given is not None:
        return given
    (task,) = await services.run(services.ops.get([task_id]))
    if task is None:
        raise TaskNotFound
    attempt = attempt_of(task, worker_id)
    if attempt is None:
        raise LeaseLost
    return attempt


async def _acknowledge(services: Services, worker_id: str, verdicts: list[Verdict]) -> Response:
    _check(*verdicts)
    await touch(services, worker_id)
    return Response(Acknowledged())


def _check(verdict: Verdict) -> None:
    if verdict is Verdict.MISSING:
        raise TaskNotFound
    if verdict is Verdict.STALE:
        raise LeaseLost


async def touch(services: Services, worker_id: str) -> None:
    """Count a call as a heartbeat, also from a worker that gets no more tasks."""
    with suppress(WorkerGone):  # the call itself has succeeded
        await services.workers.touch(worker_id)


def operation(
    name: str, handler: Any, body: Any, returns: Any, most: int = BODY_BYTES
) -> Operation:
    """Return an operation of the worker protocol."""
    return Operation(
        "POST",
        f"/internal/workers/{name}",
        handler,
        WORKER,
        WORKER,
        body=body,
        returns=returns,
        most=most,
        optional_body=True,
    )


OPERATIONS: Final = [
    operation("{worker_id}/result", result, RunResult, ResultAcknowledged),
    operation("{worker_id}/poll", poll, Poll, PollReply),
    operation("{worker_id}/start", start, TaskStart, Acknowledged),
    operation("{worker_id}/progress", progress, TaskProgress, Acknowledged),
    operation("{worker_id}/heartbeat", heartbeat, Heartbeat, HeartbeatReply),
    operation("register", register, Registration, Registered),
    operation("{worker_id}/deregister", deregister, None, Deregistered),
]
