"""apply: executing tasks move, each under its fence."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from fairlane.core import encryption
from fairlane.core.flow import Flow, writes
from fairlane.core.ids import checked_all
from fairlane.core.machine import COMPLETE, RERUN, Clears, Place, Slot, Verb, allows
from fairlane.core.model import Verdict
from fairlane.core.priority import MICROSECONDS
from fairlane.core.records import stored_error
from fairlane.core.settlement import Fence, FencedMove, judge_late
from fairlane.core.states import State
from fairlane.core.tally import STALE_RESULTS, apart, bucket_of
from fairlane.engines.compression.results import expanded
from fairlane.engines.files import fill
from fairlane.engines.postgres.accounting import count, fold_and_trim
from fairlane.engines.postgres.calls import (
    ASK_NESTED,
    BEGIN,
    COMMIT,
    ROLLBACK,
    WAKE,
    Apart,
    Query,
)
from fairlane.engines.postgres.circuits import count_apart, count_runs, find_types
from fairlane.engines.postgres.context import NOTHING, Context
from fairlane.engines.postgres.dependents import release_dependents
from fairlane.engines.postgres.documents import refuse_plain
from fairlane.engines.postgres.inspect import fetch
from fairlane.engines.postgres.moves import Ended
from fairlane.engines.postgres.rows import array, array_of_ids
from fairlane.engines.postgres.statements import load
from fairlane.engines.postgres.submit_batch import PART_BYTES, WHOLE_BYTES

SQL = load("apply")

_APPLY_PLAIN = fill(SQL["apply"], linked="")
_APPLY = fill(_APPLY_PLAIN, plain="")
"""For batches without a result in plain text."""
_COMPLETE_PLAIN = fill(_APPLY_PLAIN, others="")
_COMPLETE_ONLY = fill(_APPLY, others="")
"""The same without what only other moves need: half as many tables to open."""
_APPLY_ALL = fill(SQL["apply"], unlinked="", plain="")

_TASK_ID = attrgetter("task_id")
_COMPLETE = Verb.COMPLETE

Applied = dict[Fence, FencedMove]


class Waking:
    """Decides whether to wake waiting workers once all moves are applied.

    `slotted` are the lanes with a limit on concurrency.
    """

    def __init__(self, slotted: frozenset[int]) -> None:
        self._slotted = slotted
        self.needed = False

    def note_applied(self, items: Iterable[FencedMove], lanes: set[int]) -> None:
        """Note moves of tasks in these lanes: a task may be queued again, or a slot be free."""
        if not self._slotted.isdisjoint(lanes) or any(item.move.wakes for item in items):
            self.needed = True

    def note_late(self) -> None:
        """Note reports that came too late: their runs may have kept a slot until now."""
        if self._slotted:
            self.needed = True


@writes
def apply(self: Context, moves: Sequence[FencedMove], *, reaping: bool) -> Flow[list[Verdict]]:
    checked_all([item.task_id for item in moves])
    if not moves:
        return []
    if reaping or self.catalogue.known is NOTHING:
        # A process that reaps need not claim, so it may not know of new circuit breakers yet. One
        # that has just started, or connected again, knows of none.
        yield from self.catalogue.load()
    # Of two reports under one fence, the first is applied and the second is treated as late.
    first: Applied = {}
    for item in moves:
        first.setdefault(item.fence, item)
    waking = Waking(self.catalogue.known.slotted)
    plain = encryption.has_plain_result(item.result for item in moves)
    types = yield from find_types(self, first.values())
    # A caller may commit late. Every other settlement of these types, and every new lane, would
    # wait for that if the caller's transaction had counted the runs.
    nested = bool(types) and (yield ASK_NESTED)
    counted = {} if nested else types
    applied: Applied = {}
    # Reaping waits for no lock of a run: one that hangs would block all others.
    if not reaping:
        alone: Collection[FencedMove] = first.values()
        if counted:
            alone = [item for item in alone if item.task_id not in counted]
        applied = yield from _apply(alone, waking, plain)
    if plain and len(applied) < len(moves):
        yield from refuse_plain()  # the statement does not, if it matches nothing
    if len(applied) < len(first):
        rest = [item for fence, item in first.items() if fence not in applied]
        applied |= yield from _apply_with_locks(rest, reaping, waking, counted)
    verdicts: dict[int, Verdict] = {}
    if len(applied) < len(moves):
        late = [item for item in moves if applied.get(item.fence) is not item]
        verdicts = yield from _judge(self, late, reaping)
        waking.note_late()
    if nested:
        yield Apart(lambda: count_apart(applied.values(), types))
    yield from fold_and_trim(self)
    if waking.needed:
        yield WAKE
    return [verdicts.get(id(item), Verdict.APPLIED) for item in moves]


def _apply(items: Iterable[FencedMove], waking: Waking, plain: bool) -> Flow[Applied]:
    """Apply the moves whose fence matches. Linked tasks are left out."""
    applied: Applied = {}
    for part in _parts(sorted(items, key=_TASK_ID)):
        applied |= yield from _apply_part(part, waking, plain)
    return applied


def _parts(items: list[FencedMove]) -> Iterator[list[FencedMove]]:
    """Yield items in parts of a limited size: drivers copy the parameters of a statement several
    times."""
    sizes = list(map(_size, items))
    if sum(sizes) <= WHOLE_BYTES:
        if items:
            yield items
        return
    size, part = 0, list[FencedMove]()
    for item, own in zip(items, sizes, strict=True):
        size += own
        if part and size > PART_BYTES:
            yield part
            size, part = own, []
        part.append(item)
    if part:
        yield part


def _size(item: FencedMove) -> int:
    """Return about how large the result or the error of a move is."""
    error = item.move.error
    size = 0 if item.result is None else len(item.result)
    return size if error is None else size + len(error.message) + len(error.traceback or "")


def _apply_part(wanted: list[FencedMove], waking: Waking, plain: bool) -> Flow[Applied]:
    alike = all(item.move.verb is _COMPLETE for item in wanted)
    if plain:
        statement = _COMPLETE_PLAIN if alike else _APPLY_PLAIN
    else:
        statement = _COMPLETE_ONLY if alike else _APPLY
    rows = yield _query(statement, wanted, reaping=False, bare=alike)
    matched = [wanted[number - 1] for number, *_ in rows]
    waking.note_applied(matched, {lane for _, lane, *_ in rows})
    return {item.fence: item for item in matched}


def _apply_with_locks(
    items: list[FencedMove], reaping: bool, waking: Waking, counted: Mapping[str, str]
) -> Flow[Applied]:
    """Apply moves that `_apply` left out: the task is linked, or its row was just updated, or the
    circuit breaker of its type counts the run."""
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
    matched: list[tuple[FencedMove, bool]] = []
    for part in _parts(wanted):
        rows = yield _query(_APPLY_ALL, part, reaping)
        matched += [(part[number - 1], linked) for number, _, linked in rows]
        waking.note_applied((item for item, _ in matched), {lane for _, lane, _ in rows})
    applied = {item.fence: item for item, _ in matched}
    released = yield from release_dependents(
        Ended(item.task_id, item.move.state)
        for item, linked in matched
        if linked and item.move.ends
    )
    # A circuit that opened has a new time for its next run: waiting workers need to know it.
    turned = yield from count_runs(applied.values(), counted)
    yield COMMIT
    waking.needed = waking.needed or released or turned
    return applied


def _query(statement: str, wanted: list[FencedMove], reaping: bool, *, bare: bool = False) -> Query:
    """Return a statement with its parameters. `bare`: without those that completions do not need.

    `wanted` is sorted, so that two batches with the same tasks cannot wait for each other.
    """
    numbers: dict[str | tuple[Any, ...], int] = {}
    kinds = [numbers.setdefault(_kind(item), len(numbers) + 1) for item in wanted]
    values = [(kind, *_COMPLETED) if isinstance(kind, str) else kind for kind in numbers]
    columns = [list(column) for column in zip(*values, strict=True)]
    return Query(
        statement,
        (
            array_of_ids([item.task_id for item in wanted]),
            array(item.attempt for item in wanted),
            array(kinds),
            [item.result for item in wanted],
            array(item.seconds for item in wanted),
            array(bucket_of(item.seconds) for item in wanted),
            *columns[:_IN_COMMON],
            reaping,
            *([] if bare else columns[_IN_COMMON:]),
        ),
    )


def _kind(item: FencedMove) -> str | tuple[Any, ...]:
    """Return the values that moves of one kind have in common; of a completion, the worker."""
    move = item.move
    if move.verb is _COMPLETE:
        # Completions change no counter of a task, so all completions of a worker are of one kind.
        return item.worker_id
    assert allows(move.verb, State.EXECUTING), move
    # The statement writes out what is cleared.
    assert move.clears == (Clears.ERROR if move.ends else RERUN), move
    return (
        item.worker_id,
        move.verb.value,
        move.state.code,
        move.retry_count,
        move.label,
        stored_error(move.error),
        move.run,
        move.returns,
        move.timeout,
        int(move.after * MICROSECONDS),
        move.slot is Slot.LINGER,
        move.place is Place.RESET,
    )


_IN_COMMON = 6
"""How many of these values a completion needs, too."""

_COMPLETED = (
    Verb.COMPLETE.value,
    State.COMPLETED.code,
    None,
    "",
    None,
    COMPLETE.run,
    *[None] * 3,
    False,
    False,
)


def _judge(self: Context, late: list[FencedMove], reaping: bool) -> Flow[dict[int, Verdict]]:
    """Return the verdicts on moves whose fence did not match. Their runs free their slots."""
    tasks = yield from fetch(self, [item.task_id for item in late])
    verdicts = {id(item): judge_late(expanded(tasks.get(item.task_id)), item) for item in late}
    if not reaping:
        columns = (
            [item.worker_id for item in late],
            array_of_ids([item.task_id for item in late]),
            array(item.attempt for item in late),
        )
        yield Query(SQL["drop_lingering"], columns)
        stale = sum(verdict is Verdict.STALE for verdict in verdicts.values())
        yield from count([apart(STALE_RESULTS)] * stale)
    return verdicts
