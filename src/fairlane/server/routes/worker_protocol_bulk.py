"""`/internal/workers` in bulk: for workers that run many tasks, Fairlane's own among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from fairlane.core import limits
from fairlane.core.errors import BatchTooLarge
from fairlane.core.leases import check_amount
from fairlane.core.model import Ask, Beat, Report, Start, Verdict, WorkerStatus
from fairlane.core.settlement import Settled
from fairlane.server.large_bodies import PART_BYTES, Pace
from fairlane.server.operations import BATCH_BYTES, Call
from fairlane.server.reports import RunReport
from fairlane.server.responses import Response
from fairlane.server.routes.worker_protocol import (
    caller,
    check_names,
    lost_runs,
    operation,
    touch,
    wait_seconds,
)
from fairlane.server.services import Services
from fairlane.server.workers import KnownWorker
from fairlane.wire.worker_protocol import Heartbeat, line
from fairlane.wire.worker_protocol_bulk import (
    Claim,
    ClaimAnswer,
    CompletionsView,
    CountCompletions,
    DisownedRuns,
    EndedRuns,
    HeldRun,
    HoldingsView,
    ListHoldings,
    ProgressReports,
    PulseView,
    Results,
    StartReports,
    Verdicts,
)


async def claim(services: Services, call: Call[Claim, None]) -> Response:
    """Return tasks to run and to hold. Waits for some, if the worker asks for that."""
    body, worker_id = call.body, caller(call)
    known = await services.workers.touch(worker_id)
    ask = _ask(body, worker_id, known)
    # A worker without free slots does not wait, so that it can ask again once it has some.
    seconds = wait_seconds(services, known, body.wait_seconds) if ask.slots else 0.0
    in_line = known.status is WorkerStatus.ACTIVE
    grant = await services.polls.take(ask, seconds, call.left, in_line=in_line, begins=False)
    return Response(ClaimAnswer.of(grant))


async def starts(services: Services, call: Call[StartReports, None]) -> Response:
    """Record when tasks started. Their timeouts count from then."""
    worker_id = caller(call)
    started = [Start(each.task_id, each.attempt, each.seconds) for each in call.body.starts]
    verdicts = await services.run(services.ops.start(worker_id, _check_size(started)))
    return await _verdicts(services, worker_id, verdicts)


async def reports(services: Services, call: Call[ProgressReports, None]) -> Response:
    """Record the progress of tasks."""
    worker_id = caller(call)
    made = [
        Report(each.task_id, each.attempt, each.progress_percent, line(each.status_message))
        for each in call.body.reports
    ]
    verdicts = await services.run(services.ops.progress(worker_id, _check_size(made)))
    return await _verdicts(services, worker_id, verdicts)


async def results(services: Services, call: Call[EndedRuns, None]) -> Response:
    """Record how runs ended. Reporting the same result twice is not an error."""
    worker_id = caller(call)
    answer, pace = Results((), ()), Pace()
    ended: list[RunReport] = []
    size = 0
    for each in _check_size(call.body.results):
        if ended and size + each.size > PART_BYTES:
            answer += await _settle(services, ended)
            ended, size = [], 0
        report = RunReport(
            worker_id,
            each.task_id,
            each.attempt,
            each.outcome(),
            each.execution_duration_seconds,
            estimated=False,
        )
        ended.append(report)
        size += each.size
        await pace.rest()
    answer += await _settle(services, ended)
    await touch(services, worker_id)
    return Response(answer)


async def _settle(services: Services, ended: Sequence[RunReport]) -> Results:
    judged = await services.settle_reports(ended)
    return Results.of([Settled(each.verdict, each.move) for each in judged])


async def pulse(services: Services, call: Call[Heartbeat, None]) -> Response:
    """Record that a worker is alive. The response says until when, and which runs it has lost."""
    body, worker_id = call.body, caller(call)
    status = None if body.status is None else WorkerStatus(body.status)
    tasks = body.checked_tasks()
    health = body.checked_health()
    beat = await services.workers.beat(Beat(worker_id, body.current_load, status, health))
    lost = dict.fromkeys(beat.let_go + await lost_runs(services, worker_id, tasks))
    gone = tuple(HeldRun(task_id, attempt) for task_id, attempt in lost)
    return Response(PulseView(beat.remaining, beat.status, gone))


async def holdings(services: Services, call: Call[ListHoldings, None]) -> Response:
    """Return which runs the worker holds by the store's word, to be compared with those that it
    has."""
    body, worker_id = call.body, caller(call)
    found = await services.run(services.ops.holdings(worker_id, body.limit, body.cursor))
    runs = tuple(HeldRun(task_id, attempt) for task_id, attempt in found.runs)
    return Response(HoldingsView(runs, found.cursor))


async def completions(services: Services, call: Call[CountCompletions, None]) -> Response:
    """Count the runs of types that have ever completed. A worker whose own runs fail learns from it
    whether others do better."""
    types, queues = _check_size(call.body.types), call.body.queues
    check_names((*types, *(queues or ())))
    found = await services.run(services.ops.completions(types, queues))
    return Response(CompletionsView(found))


async def disown(services: Services, call: Call[DisownedRuns, None]) -> Response:
    """Take runs from a worker that does not have them. Their tasks run again, as if the worker had
    died."""
    worker_id = caller(call)
    runs = [(each.task_id, each.attempt) for each in _check_size(call.body.runs)]
    verdicts = await services.run(services.ops.disown(worker_id, runs))
    return await _verdicts(services, worker_id, verdicts)


def _ask(body: Claim, worker_id: str, known: KnownWorker) -> Ask:
    def or_known(given: Any, registered: Any) -> Any:
        return registered if isinstance(given, msgspec.UnsetType) else given

    ask = Ask(
        worker_id,
        body.request_id,
        body.slots,
        body.ahead,
        types=or_known(body.types, known.types),
        queues=or_known(body.queues, known.queues),
        capabilities=or_known(body.capabilities, known.capabilities),
        heard=body.heard,
    )
    given = (body.capabilities, body.queues, body.types)
    check_amount(*(names for names in given if not isinstance(names, msgspec.UnsetType)))
    check_names((ask.request_id, *([ask.heard] if ask.heard else []), *ask.capabilities))
    return ask


def _check_size(items: Sequence[Any]) -> Sequence[Any]:
    if len(items) > limits.BATCH:
        raise BatchTooLarge(f"At most {limits.BATCH} items are sent at once, not {len(items):,}.")
    return items


async def _verdicts(services: Services, worker_id: str, verdicts: Sequence[Verdict]) -> Response:
    await touch(services, worker_id)
    return Response(Verdicts.of(verdicts))


OPERATIONS: Final = [
    operation("{worker_id}/results", results, EndedRuns, Results, BATCH_BYTES),
    operation("{worker_id}/claim", claim, Claim, ClaimAnswer),
    operation("{worker_id}/starts", starts, StartReports, Verdicts),
    operation("{worker_id}/reports", reports, ProgressReports, Verdicts),
    operation("{worker_id}/pulse", pulse, Heartbeat, PulseView),
    operation("{worker_id}/holdings", holdings, ListHoldings, HoldingsView),
    operation("completions", completions, CountCompletions, CompletionsView),
    operation("{worker_id}/disown", disown, DisownedRuns, Verdicts),
]
