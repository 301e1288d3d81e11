"""settle: what became of executing tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from fairlane.core.flow import Flow, writes
from fairlane.core.ids import checked_all
from fairlane.core.machine import Fence, Settlement, Verb, verdict_on_late
from fairlane.core.model import Verdict
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import TERMINAL, State
from fairlane.core.tally import STALE_RESULTS, apart, bucket_of
from fairlane.engines.postgres.calls import BEGIN, COMMIT, ROLLBACK, WAKE, Query
from fairlane.engines.postgres.circuits import count_runs
from fairlane.engines.postgres.context import Context
from fairlane.engines.postgres.ends import Ended, see_out
from fairlane.engines.postgres.inspect import fetch
from fairlane.engines.postgres.ledger import count, upkeep
from fairlane.engines.postgres.rows import array, array_of_ids
from fairlane.engines.postgres.statements import load

SQL = load("settle")


def _statement(others: str, plain: str, answer: str) -> str:
    filled = SQL["settle"].replace("{others}", others)
    return filled.replace("{plain}", plain).replace("{answer}", answer)


_PLAIN = "AND NOT task.linked"
_SETTLE = _statement(SQL["others"], _PLAIN, "number, lane")
_COMPLETE_ONLY = _statement("", _PLAIN, "number, lane")
"""The same without what only other changes need: half as many tables to open."""
_SETTLE_ALL = _statement(SQL["others"], "", "number, lane, linked")

_TASK_ID = attrgetter("task_id")

Applied = dict[Fence, Settlement]


class Outlook:
    """Whether claims have something new to look at, once all is settled."""

    def __init__(self, slotted: frozenset[int]) -> None:
        self._slotted = slotted
        self.news = False

    def settled(self, items: Iterable[Settlement], lanes: set[int]) -> None:
        """A task is in a queue again, or its run makes room for another."""
        if not self._slotted.isdisjoint(lanes) or any(
            item.change.state is State.QUEUED for item in items
        ):
            self.news = True

    def judged(self) -> None:
        """Runs that came too late may have kept others waiting until now."""
        if self._slotted:
            self.news = True


@writes
def settle(
    self: Context, settlements: Sequence[Settlement], *, reaping: bool = False
) -> Flow[list[Verdict]]:
    checked_all([item.task_id for item in settlements])
    if not settlements:
        return []
    if reaping:
        # Whoever reaps need not claim, and so may not have heard of breakers that were set.
        yield from self.catalogue.load()
    # Of two reports under one fence the first is applied and the second judged like a late one.
    first: Applied = {}
    for item in settlements:
        first.setdefault(item.fence, item)
    outlook = Outlook(self.catalogue.known.slotted)
    # Whoever reaps waits for nobody's lock: one run that hangs would hold up all others.
    applied = {} if reaping else (yield from _apply(first.values(), outlook))
    if len(applied) < len(first):
        rest = [item for fence, item in first.items() if fence not in applied]
        applied |= yield from _apply_with_locks(rest, reaping, outlook)
    verdicts: dict[int, Verdict] = {}
    if len(applied) < len(settlements):
        late = [item for item in settlements if applied.get(item.fence) is not item]
        verdicts = yield from _judge(self, late, reaping)
        outlook.judged()
    yield from count_runs(self, applied.values())
    yield from upkeep(self)
    if outlook.news:
        yield WAKE
    return [verdicts.get(id(item), Verdict.APPLIED) for item in settlements]


def _apply(items: Iterable[Settlement], outlook: Outlook) -> Flow[Applied]:
    """Apply those whose fence matches: the common way, one statement."""
    wanted = sorted(items, key=_TASK_ID)
    alike = all(item.change.verb is Verb.COMPLETE for item in wanted)
    rows = yield _query(_COMPLETE_ONLY if alike else _SETTLE, wanted, reaping=False, bare=alike)
    matched = [wanted[number - 1] for number, _ in rows]
    outlook.settled(matched, {lane for _, lane in rows})
    return {item.fence: item for item in matched}


def _apply_with_locks(items: list[Settlement], reaping: bool, outlook: Outlook) -> Flow[Applied]:
    """Apply those that are held after all: a row was updated just then, or it is linked."""
    rows = yield Query(SQL["held_now"], (array_of_ids([item.task_id for item in items]),))
    held = {(task_id, attempt, worker_id) for task_id, attempt, worker_id in rows}
    wanted = sorted((item for item in items if item.fence in held), key=_TASK_ID)
    if not wanted:
        return {}
    yield BEGIN
    lock = SQL["lock_unlocked" if reaping else "lock_held"]
    rows = yield Query(lock, (array_of_ids([item.task_id for item in wanted]),))
    locked = {task_id for (task_id,) in rows}
    wanted = [item for item in wanted if item.task_id in locked]
    if not wanted:
        yield ROLLBACK
        return {}
    rows = yield _query(_SETTLE_ALL, wanted, reaping)
    matched = [(wanted[number - 1], linked) for number, _, linked in rows]
    applied = {item.fence: item for item, _ in matched}
    outlook.settled(applied.values(), {lane for _, lane, _ in rows})
    news = yield from see_out(
        Ended(item.task_id, item.change.state)
        for item, linked in matched
        if linked and item.change.state in TERMINAL
    )
    yield COMMIT
    outlook.news = outlook.news or news
    return applied


def _query(statement: str, wanted: list[Settlement], reaping: bool, *, bare: bool = False) -> Query:
    """A statement with its values. They are in one order for all, so that two batches with the same
    tasks cannot wait for each other. `bare`: without what completions do not need."""
    numbers: dict[tuple[Any, ...], int] = {}
    kinds = [numbers.setdefault(_kind(item, reaping), len(numbers) + 1) for item in wanted]
    columns = [list(column) for column in zip(*numbers, strict=True)]
    return Query(
        statement,
        (
            array_of_ids([item.task_id for item in wanted]),
            array(item.attempt for item in wanted),
            array(kinds),
            [item.change.result for item in wanted],
            array(item.seconds for item in wanted),
            array(bucket_of(item.seconds) for item in wanted),
            *columns[:_IN_COMMON],
            reaping,
            *([] if bare else columns[_IN_COMMON:]),
        ),
    )


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


def _judge(self: Context, late: list[Settlement], reaping: bool) -> Flow[dict[int, Verdict]]:
    """What to say of settlements that did not match; their attempts let go of their slots."""
    tasks = yield from fetch(self, [item.task_id for item in late])
    verdicts = {id(item): verdict_on_late(tasks.get(item.task_id), item) for item in late}
    if not reaping:
        columns = (
            [item.worker_id for item in late],
            array_of_ids([item.task_id for item in late]),
            array(item.attempt for item in late),
        )
        yield Query(SQL["let_go"], columns)
        stale = sum(verdict is Verdict.STALE for verdict in verdicts.values())
        yield from count([apart(STALE_RESULTS)] * stale)
    return verdicts
