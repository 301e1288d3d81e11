"""settle: what became of executing tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from fairlane.core.flow import Flow, writes
from fairlane.core.ids import checked_all
from fairlane.core.machine import Fence, Settlement, Verb, verdict_on_late
from fairlane.core.model import Task, Verdict
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import State
from fairlane.core.tally import bucket_of
from fairlane.engines.postgres.calls import WAKE, Query
from fairlane.engines.postgres.context import Context
from fairlane.engines.postgres.inspect import fetch
from fairlane.engines.postgres.ledger import upkeep
from fairlane.engines.postgres.rows import array, array_of_ids
from fairlane.engines.postgres.statements import load

SQL = load("settle")
SETTLE = SQL["settle"].replace("{others}", SQL["others"])
COMPLETE = SQL["settle"].replace("{others}", "")
"""The same without what only other changes need: half as many tables to open."""

_TASK_ID = attrgetter("task_id")


@writes
def settle(
    self: Context, settlements: Sequence[Settlement], *, reaping: bool = False
) -> Flow[list[Verdict]]:
    checked_all([item.task_id for item in settlements])
    if not settlements:
        return []
    # Of two reports under one fence the first is applied and the second judged like a late one.
    first: dict[Fence, Settlement] = {}
    for item in settlements:
        first.setdefault(item.fence, item)
    applied = yield from _apply(first.values(), reaping)
    verdicts: dict[int, Verdict] = {}
    if len(applied) < len(settlements):
        late = [item for item in settlements if applied.get(item.fence) is not item]
        verdicts = yield from _judge(self, late, applied, first, reaping)
    yield from upkeep(self)
    if any(item.change.state is State.QUEUED for item in applied.values()):
        yield WAKE
    return [verdicts.get(id(item), Verdict.APPLIED) for item in settlements]


def _apply(items: Iterable[Settlement], reaping: bool) -> Flow[dict[Fence, Settlement]]:
    """Apply those whose fence matches."""
    # In one order for all, so that two batches with the same tasks cannot wait for each other.
    wanted = sorted(items, key=_TASK_ID)
    alike = all(item.change.verb is Verb.COMPLETE for item in wanted)
    numbers: dict[tuple[Any, ...], int] = {}
    kinds = [numbers.setdefault(_kind(item, reaping), len(numbers) + 1) for item in wanted]
    columns = [list(column) for column in zip(*numbers, strict=True)]
    rows = yield Query(
        COMPLETE if alike else SETTLE,
        (
            array_of_ids([item.task_id for item in wanted]),
            array(item.attempt for item in wanted),
            array(kinds),
            [item.change.result for item in wanted],
            array(item.seconds for item in wanted),
            array(bucket_of(item.seconds) for item in wanted),
            *columns[:_IN_COMMON],
            reaping,
            *([] if alike else columns[_IN_COMMON:]),
        ),
    )
    matched = (wanted[number - 1] for (number,) in rows)
    return {item.fence: item for item in matched}


def _kind(item: Settlement, reaping: bool) -> tuple[Any, ...]:
    """What settlements have in common with others of their kind."""
    change = item.change
    if change.verb is Verb.COMPLETE:
        # Completing changes none of the counters: all completions of a worker are of one kind.
        return (item.worker_id, *_COMPLETE)
    return (
        item.worker_id,
        change.verb.value,
        change.state.code,
        change.retry_count,
        change.reason or "",
        None if change.error is None else msgspec.json.encode(change.error),
        change.outcome,
        change.returns,
        change.timeout,
        int(change.after * MICROSECONDS),
        # A live worker still runs what the maintenance declared timed out: its slot stays taken.
        reaping and change.outcome == "timed_out",
    )


_IN_COMMON = 6
"""So many of these does a completion need too."""

_COMPLETE = (
    Verb.COMPLETE.value,
    State.COMPLETED.code,
    None,
    "",
    None,
    "completed",
    *[None] * 3,
    False,
)


def _judge(
    self: Context,
    late: list[Settlement],
    applied: dict[Fence, Settlement],
    first: dict[Fence, Settlement],
    reaping: bool,
) -> Flow[dict[int, Verdict]]:
    """What to say of settlements that did not match; their attempts let go of their slots."""
    tasks = yield from fetch(self, [item.task_id for item in late])
    if not reaping:
        # A row that was updated just while it was to be settled has been missed.
        missed = [
            item
            for item in late
            if first[item.fence] is item and _holds(tasks.get(item.task_id), item)
        ]
        if missed:
            applied |= yield from _apply(missed, reaping)
            late = [item for item in late if applied.get(item.fence) is not item]
        columns = (
            [item.worker_id for item in late],
            array_of_ids([item.task_id for item in late]),
            array(item.attempt for item in late),
        )
        yield Query(SQL["let_go"], columns)
    return {id(item): verdict_on_late(tasks.get(item.task_id), item) for item in late}


def _holds(task: Task | None, item: Settlement) -> bool:
    return (
        task is not None
        and task.status is State.EXECUTING
        and (task.task_id, task.attempt, task.assigned_worker_id) == item.fence
    )
