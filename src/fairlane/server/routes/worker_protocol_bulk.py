"""`/internal/workers` in bulk: for workers that run many tasks, Fairlane's own among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from fairlane.core import limits
from fairlane.core.errors import BatchTooLarge
from fairlane.core.model import Ask, Beat, Report, Start, Verdict, WorkerStatus
from fairlane.server.answers import Answer
from fairlane.server.operations import BATCH_BYTES, Call
from fairlane.server.reports import RunReport
from fairlane.server.routes.worker_protocol import caller, check_names, operation, patience, touched
from fairlane.server.services import Services
from fairlane.server.workers import Known
from fairlane.wire.worker_protocol import Heartbeat, line
from fairlane.wire.worker_protocol_bulk import (
    Advances,
    Attempted,
    Beginnings,
    Claim,
    ClaimAnswer,
    EndedRuns,
    PulseView,
    Verdicts,
)


async def claim(services: Services, call: Call[Claim, None]) -> Answer:
    """Hand out tasks, which have not begun yet; wait for some, if the worker would."""
    body, worker_id = call.body, caller(call)
    known = await services.workers.touch(worker_id)
    ask = _ask(body, worker_id, known)
    # Who has no room now is not kept waiting, so that it can ask for what it has room for later.
    seconds = patience(services, known, body.wait_seconds) if ask.slots else 0.0
    in_line = known.status is WorkerStatus.ACTIVE
    grant = await services.polls.take(ask, seconds, call.left, in_line=in_line, begins=False)
    return Answer(ClaimAnswer.of(grant))


async def starts(services: Services, call: Call[Beginnings, None]) -> Answer:
    """Note that tasks run, and since when: their time limits count from then."""
    worker_id = caller(call)
    begun = [Start(each.task_id, each.attempt, each.seconds) for each in call.body.starts]
    verdicts = await services.run(services.ops.start(worker_id, _bounded(begun)))
    return await _judged(services, worker_id, verdicts)


async def reports(services: Services, call: Call[Advances, None]) -> Answer:
    """Note how far tasks have come."""
    worker_id = caller(call)
    made = [
        Report(each.task_id, each.attempt, each.progress_percent, line(each.status_message))
        for each in call.body.reports
    ]
    verdicts = await services.run(services.ops.progress(worker_id, _bounded(made)))
    return await _judged(services, worker_id, verdicts)


async def results(services: Services, call: Call[EndedRuns, None]) -> Answer:
    """Record how runs ended. Saying the same again is no mistake."""
    worker_id = caller(call)
    ended = [
        RunReport(
            worker_id,
            each.task_id,
            each.attempt,
            each.outcome(),
            each.execution_duration_seconds,
            estimated=False,
        )
        for each in _bounded(call.body.results)
    ]
    judged = await services.settled(ended)
    return await _judged(services, worker_id, [each.verdict for each in judged])


async def pulse(services: Services, call: Call[Heartbeat, None]) -> Answer:
    """A worker is alive; tell it for how long that holds, and which runs are no longer its own."""
    body, worker_id = call.body, caller(call)
    status = None if body.status is None else WorkerStatus(body.status)
    felt = await services.workers.beat(
        Beat(worker_id, body.current_load, status, body.checked_health())
    )
    gone = tuple(Attempted(task_id, attempt) for task_id, attempt in felt.let_go)
    return Answer(PulseView(felt.remaining, felt.status, gone))


def _ask(body: Claim, worker_id: str, known: Known) -> Ask:
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
    check_names((ask.request_id, *([ask.heard] if ask.heard else []), *ask.capabilities))
    return ask


def _bounded(items: Sequence[Any]) -> Sequence[Any]:
    if len(items) > limits.BATCH:
        raise BatchTooLarge(f"At most {limits.BATCH} runs are told of at once, not {len(items):,}.")
    return items


async def _judged(services: Services, worker_id: str, verdicts: Sequence[Verdict]) -> Answer:
    await touched(services, worker_id)
    return Answer(Verdicts.of(verdicts))


OPERATIONS: Final = [
    operation(
        "{worker_id}/results",
        results,
        "Report what became of tasks",
        EndedRuns,
        Verdicts,
        BATCH_BYTES,
    ),
    operation("{worker_id}/claim", claim, "Take tasks to run and to hold", Claim, ClaimAnswer),
    operation("{worker_id}/starts", starts, "Report that tasks run", Beginnings, Verdicts),
    operation("{worker_id}/reports", reports, "Report progress of tasks", Advances, Verdicts),
    operation("{worker_id}/pulse", pulse, "Give a sign of life", Heartbeat, PulseView),
]
