"""What a worker holds by the store's word, compared with what it really holds.

They differ while a claim or a settlement is under way. They differ for good if the store has lost
its last changes (a failover, a restored backup), or if the reply to a claim never arrived. Then the
worker gives up the runs that it does not know, and stops those that the store does not know.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec

from fairlane.core.flow import Flow, Op, writes
from fairlane.core.ids import checked_all
from fairlane.core.model import Task, Verdict
from fairlane.core.outcomes import Disowned
from fairlane.core.settlement import Settled, Settlement
from fairlane.core.states import State

Run = tuple[str, int]
"""(task id, attempt)"""
MARK = "h"
"""With this, cursors of holdings begin."""


class Holdings(msgspec.Struct, frozen=True):
    """A page of the runs that a worker holds by the store's word. `cursor`: there may be more."""

    runs: list[Run]
    cursor: str | None = None


async def read_all(page: Callable[[str | None], Awaitable[Holdings]]) -> frozenset[Run]:
    """Return the runs on all pages. `page` returns the one after a cursor."""
    runs: set[Run] = set()
    cursor: str | None = None
    while True:
        found = await page(cursor)
        runs.update(found.runs)
        if found.cursor is None:
            return frozenset(runs)
        cursor = found.cursor


class InHand(msgspec.Struct, frozen=True):
    """What a worker has at one moment.

    `runs` run or wait to run. `leaving` have ended, and the store has not confirmed it yet.
    `asked` counts the claims that the worker has sent so far, `answered` those whose tasks it has.
    """

    runs: frozenset[Run]
    leaving: frozenset[Run] = frozenset()
    asked: int = 0
    answered: int = 0


class Differences(msgspec.Struct, frozen=True):
    """What two comparisons have found: runs that the worker does not know, and runs that the store
    does not know."""

    unknown: list[Run]
    missing: list[Run]


class Comparison:
    """Compares again and again. A difference counts once two comparisons have found it.

    The first one may have met a change that was under way. The second one cannot:

    - A run that the worker does not know was given to it by a claim that had been sent before the
      first comparison. If all those claims are answered and the worker still does not know the run,
      its end was confirmed before the second listing began, or it never arrived.
    - A run that the worker had in hand before and after a listing was given to it before the
      listing, and the store has not been told of its end.
    """

    def __init__(self) -> None:
        self._unknown: dict[Run, int] = {}
        """Each with the number of claims that had been sent when it was first found."""
        self._missing: frozenset[Run] = frozenset()

    @property
    def pending(self) -> bool:
        """Whether a difference waits for another comparison."""
        return bool(self._unknown or self._missing)

    def compare(self, listed: frozenset[Run], before: InHand, after: InHand) -> Differences:
        """Return what is certain. `listed`: the store's word; `before` and `after` it was read."""
        unknown = listed - before.runs - before.leaving - after.runs - after.leaving
        missing = (before.runs & after.runs) - listed
        certain = {
            run
            for run, asked in self._unknown.items()
            if run in unknown and before.answered >= asked
        }
        gone = missing & self._missing
        self._unknown = {run: self._unknown.get(run, after.asked) for run in unknown - certain}
        self._missing = missing - gone
        return Differences(sorted(certain), sorted(gone))


class Verbs(Protocol):
    """What an engine offers to `disown`."""

    def heads(self, task_ids: Sequence[str]) -> Op[list[Task | None]]: ...

    def settle(
        self, settlements: Sequence[Settlement], *, reaping: bool = False
    ) -> Op[list[Settled]]: ...


@writes
def disown(self: Verbs, worker_id: str, runs: Sequence[Run]) -> Flow[list[Verdict]]:
    task_ids = [task_id for task_id, _ in runs]
    checked_all(task_ids)
    tasks = yield from self.heads(task_ids).flow()
    verdicts = [Verdict.MISSING if task is None else Verdict.STALE for task in tasks]
    settlements: dict[int, Settlement] = {}
    for place, ((task_id, attempt), task) in enumerate(zip(runs, tasks, strict=True)):
        fence = (task_id, attempt, worker_id)
        if task is not None and task.state is State.EXECUTING and fence == _fence(task):
            outcome = Disowned(started=task.started_at is not None)
            settlements[place] = Settlement(*fence, outcome, task)
    settled = yield from self.settle(list(settlements.values())).flow()
    for place, answer in zip(settlements, settled, strict=True):
        verdicts[place] = answer.verdict
    return verdicts


def _fence(task: Task) -> tuple[str, int, str | None]:
    return (task.task_id, task.attempt, task.worker_id)
