"""Reports of workers over HTTP: settled in batches, decided by the core."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime

import msgspec

from fairlane.core.machine import Move
from fairlane.core.model import Task, Verdict
from fairlane.core.outcomes import Outcome
from fairlane.core.settlement import Settled, Settlement
from fairlane.core.states import State

Get = Callable[[Sequence[str]], Awaitable[list[Task | None]]]
Settle = Callable[[Sequence[Settlement]], Awaitable[list[Settled]]]


class RunReport(msgspec.Struct, frozen=True):
    """How a run ended, as the worker reports it. Without `attempt`: the worker's last one.

    Without `seconds` the run had not started; or, if `estimated`, its duration is unknown.
    """

    worker_id: str
    task_id: str
    attempt: int | None
    outcome: Outcome
    seconds: float | None
    estimated: bool = True


class ReportResult(msgspec.Struct, frozen=True):
    """The verdict on a report, the move of the task, and its state now."""

    verdict: Verdict
    move: Move | None = None
    state: State | None = None


async def settle_reports(
    heads: Get, get: Get, settle: Settle, reports: Sequence[RunReport]
) -> list[ReportResult]:
    """Settle reports, with one read and one write for all of them. Earlier runs are read only of
    tasks whose attempt the worker does not name and that it does not hold."""
    tasks = await heads([report.task_id for report in reports])
    places = [
        place
        for place, (report, task) in enumerate(zip(reports, tasks, strict=True))
        if task is not None and report.attempt is None and task.worker_id != report.worker_id
    ]
    for place in places:
        (tasks[place],) = await get([reports[place].task_id])
    answers = [ReportResult(Verdict.MISSING if task is None else Verdict.STALE) for task in tasks]
    settlements: dict[int, Settlement] = {}
    for position, (report, task) in enumerate(zip(reports, tasks, strict=True)):
        settlement = None if task is None else _settlement(report, task)
        if settlement is not None:
            settlements[position] = settlement
    settled = await settle(list(settlements.values()))
    for (position, settlement), (verdict, move) in zip(settlements.items(), settled, strict=True):
        task = tasks[position]
        if task is not None:
            # A repeated report, whose first response got lost, moves nothing.
            moved = move is not None and _is_held(task, settlement)
            state = move.state if move is not None and moved else task.state
            answers[position] = ReportResult(verdict, move, state)
    return answers


def attempt_of(task: Task, worker_id: str) -> int | None:
    """Return the number of a worker's last run of a task, if there is one."""
    if task.worker_id == worker_id:
        return task.attempt
    return max((run.number for run in task.attempts if run.worker_id == worker_id), default=None)


def _settlement(report: RunReport, task: Task) -> Settlement | None:
    attempt = attempt_of(task, report.worker_id) if report.attempt is None else report.attempt
    if attempt is None:
        return None
    seconds = report.seconds
    if seconds is None and report.estimated:
        seconds = _seconds(task)
    fence = (task.task_id, attempt, report.worker_id)
    return Settlement(*fence, report.outcome, task, seconds, random.random())


def _is_held(task: Task, settlement: Settlement) -> bool:
    fence = (task.task_id, task.attempt, task.worker_id)
    return task.state is State.EXECUTING and fence == settlement.fence


def _seconds(task: Task) -> float:
    """Return about how long a run took, if the worker does not say."""
    began = task.started_at or task.claimed_at
    if began is None:
        return 0.0
    seconds = (datetime.now(UTC) - began).total_seconds()
    longest = seconds if task.timeout is None else task.timeout
    return max(0.0, min(seconds, longest))
