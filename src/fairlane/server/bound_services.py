"""What the operations of a server share, as far as a bound token may use it.

A route is given this instead of `Services` when the caller's token is bound. It has the same names,
so that routes need not know. What is not here cannot be used: a route that was opened to bound
tokens by mistake fails, and shows nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from msgspec.structs import replace

from fairlane.core.bounded import BoundOperations
from fairlane.core.model import Accepted, Ask, Grant, NewTask, Task
from fairlane.core.ownership import Bounds
from fairlane.server.reports import ReportResult, RunReport
from fairlane.server.services import Services


def within(services: Services, bounds: Bounds) -> Services:
    """Return the services for a token with these bounds."""
    return cast(Services, _BoundServices(services, bounds))


class _BoundServices:
    def __init__(self, services: Services, bounds: Bounds) -> None:
        self.config = services.config
        self.stopping = services.stopping
        self.run = services.run
        self.admit = services.admit
        self.places = services.places
        self.templates = services.templates
        # By worker ids, which belong to a token.
        self.workers = services.workers
        self.holdings = services.holdings
        self.ops = BoundOperations(services.ops, bounds)
        self.submissions = _Submissions(services, self.ops)
        self.results = _Results(services, self.ops)
        self.polls = _Polls(services, bounds)
        self.reports = _Reports(services, self.ops)
        self.settle_reports = self.reports.settle


class _Submissions:
    def __init__(self, services: Services, ops: BoundOperations) -> None:
        self._services = services
        self._ops = ops

    async def send(self, task: NewTask) -> Accepted:
        """Submit a task, possibly with those of other callers."""
        run = self._services.run
        await run(self._ops.check_new([task]))
        accepted = await self._services.submissions.send(task)
        if accepted.known:
            await run(self._ops.check_known([task], [accepted]))
        return accepted


class _Results:
    def __init__(self, services: Services, ops: BoundOperations) -> None:
        self._services = services
        self._ops = ops

    async def wait(self, task_id: str) -> Task | None:
        """Return the task once it has ended, or None if there is no such task."""
        (task,) = await self._services.run(self._ops.get([task_id]))
        return None if task is None else await self._services.results.wait(task_id)


class _Polls:
    def __init__(self, services: Services, bounds: Bounds) -> None:
        self._services = services
        self._bounds = bounds

    async def take(
        self, ask: Ask, seconds: float, left: Callable[[], Awaitable[None]], **how: Any
    ) -> Grant:
        """Return tasks for a worker, of the queues that it may claim from."""
        narrowed = replace(ask, queues=self._bounds.narrow_queues(ask.queues))
        return await self._services.polls.take(narrowed, seconds, left, **how)


class _Reports:
    def __init__(self, services: Services, ops: BoundOperations) -> None:
        self._services = services
        self._ops = ops

    async def send(self, report: RunReport) -> ReportResult:
        """Record a report, possibly with those of other workers."""
        (judged,) = await self._judge([report], [await self._services.reports.send(report)])
        return judged

    async def settle(self, reports: Sequence[RunReport]) -> list[ReportResult]:
        """Record reports, up to 500 at once."""
        return await self._judge(reports, await self._services.settle_reports(reports))

    async def _judge(
        self, reports: Sequence[RunReport], results: Sequence[ReportResult]
    ) -> list[ReportResult]:
        verdicts = await self._services.run(
            self._ops.judge(
                [report.task_id for report in reports], [result.verdict for result in results]
            )
        )
        return [
            result if result.verdict is verdict else ReportResult(verdict)
            for result, verdict in zip(results, verdicts, strict=True)
        ]
