"""submit: tasks enter."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from fairlane.core import limits
from fairlane.core.errors import BatchTooLarge, IdempotencyConflict, InvalidTaskId, StoreBusy
from fairlane.core.flow import Flow, writes
from fairlane.core.model import PLAIN, Accepted, NewTask
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import State
from fairlane.engines.postgres.calls import BEGIN, COMMIT, ROLLBACK, WAITERS, WAKE, WAKE_US, Query
from fairlane.engines.postgres.context import Context, Known, Stream
from fairlane.engines.postgres.ledger import upkeep
from fairlane.engines.postgres.rows import array, array_of_ids
from fairlane.engines.postgres.statements import load
from fairlane.engines.postgres.trouble import Duplicate

SQL = load("submit")
_SUBMIT = SQL["submit"].replace("{scheduled}", "")
_SUBMIT_SOME_FOR_LATER = SQL["submit"].replace("{scheduled}", SQL["scheduled"])


@writes
def submit(self: Context, tasks: Sequence[NewTask]) -> Flow[list[Accepted]]:
    if len(tasks) > limits.SUBMIT_BATCH:
        raise BatchTooLarge(
            f"At most {limits.SUBMIT_BATCH:,} tasks are stored at once, not {len(tasks):,}."
        )
    if len({task.task_id for task in tasks}) < len(tasks):
        raise InvalidTaskId("A task id occurs twice in one batch: every task needs its own.")
    if not tasks:
        return []
    if any(task.idempotency_key is not None for task in tasks):
        answers, awaited = yield from _submit_carefully(self, tasks)
    else:
        try:
            answers, awaited = yield from _submit_plainly(self, tasks)
        except Duplicate:
            answers, awaited = yield from _submit_carefully(self, tasks)
    yield from upkeep(self)
    if any(answer.state is State.QUEUED and not answer.known for answer in answers):
        yield WAKE if awaited else WAKE_US
    return answers


def _submit_plainly(self: Context, tasks: Sequence[NewTask]) -> Flow[tuple[list[Accepted], bool]]:
    """The common way: one statement. Raises Duplicate when an id is stored already."""
    batch = Batch(tasks)
    if missing := self.catalogue.known.missing(batch.streams):
        yield from self.catalogue.open(missing)
    return (yield from batch.insert(self.catalogue.known))


def _submit_carefully(self: Context, tasks: Sequence[NewTask]) -> Flow[tuple[list[Accepted], bool]]:
    """The way for tasks that may be known, by id or by key."""
    stored: list[Accepted] = []
    awaited = False
    while True:
        yield BEGIN
        known = yield from _stored([task.task_id for task in tasks])
        keyed = [task for task in tasks if task.idempotency_key and task.task_id not in known]
        twins: dict[str, str] = {}
        if keyed:
            twins = yield from _take_keys(keyed, known)
        fresh = [task for task in tasks if task.task_id not in known and task.task_id not in twins]
        batch = Batch(fresh)
        missing = self.catalogue.known.missing(batch.streams)
        if not missing:
            break
        yield ROLLBACK
        yield from self.catalogue.open(missing)
    try:
        if fresh:
            stored, awaited = yield from batch.insert(self.catalogue.known)
    except Duplicate:
        raise StoreBusy("The same tasks are being submitted twice at this moment.") from None
    yield COMMIT
    answers = known | {answer.task_id: answer for answer in stored}
    for task_id, first in twins.items():
        answer = answers[first]
        answers[task_id] = Accepted(first, answer.state, answer.created_at, known=True)
    return [answers[task.task_id] for task in tasks], awaited


def _take_keys(tasks: list[NewTask], known: dict[str, Accepted]) -> Flow[dict[str, str]]:
    """Take the keys that are free.

    Answers for tasks whose key is taken go into `known`. Returned are those whose key another task
    of the same batch has, with the id of that one.
    """
    first: dict[str, NewTask] = {}
    twins: dict[str, str] = {}
    for task in tasks:
        key = task.idempotency_key
        assert key is not None
        earlier = first.setdefault(key, task)
        if earlier is not task:
            _check_same(task, earlier.fingerprint)
            twins[task.task_id] = earlier.task_id
    asked = [first[key] for key in sorted(first)]
    rows = yield Query(SQL["take_keys"], _key_columns(asked))
    refused = [task for task in asked if task.idempotency_key not in {key for (key,) in rows}]
    if not refused:
        return twins
    rows = yield Query(SQL["key_holders"], ([task.idempotency_key for task in refused],))
    holders = {key: (str(task_id), fingerprint) for key, task_id, fingerprint in rows}
    stored = yield from _stored([task_id for task_id, _ in holders.values()])
    orphans = []
    for task in refused:
        holder, fingerprint = holders.get(task.idempotency_key, (None, None))
        if holder not in stored:
            orphans.append(task)  # its task has been cleared away: the key is free
            continue
        _check_same(task, fingerprint)
        known[task.task_id] = stored[holder]
        for twin in [twin for twin, original in twins.items() if original == task.task_id]:
            known[twin] = stored[holder]
            del twins[twin]
    if orphans:
        yield Query(SQL["inherit_keys"], _key_columns(orphans))
    return twins


def _check_same(task: NewTask, fingerprint: bytes | None) -> None:
    if task.fingerprint != fingerprint:
        raise IdempotencyConflict


def _key_columns(tasks: list[NewTask]) -> tuple[Any, ...]:
    return (
        [task.idempotency_key for task in tasks],
        array_of_ids([task.task_id for task in tasks]),
        [task.fingerprint for task in tasks],
        limits.IDEMPOTENCY_SECONDS * MICROSECONDS,
    )


def _stored(task_ids: list[str]) -> Flow[dict[str, Accepted]]:
    if not task_ids:
        return {}
    rows = yield Query(SQL["stored"], (array_of_ids(task_ids),))
    return {
        str(task_id): Accepted(str(task_id), State.of(state), created_at, known=True)
        for task_id, state, created_at in rows
    }


class Batch:
    """Tasks sorted by what they have in common."""

    def __init__(self, tasks: Sequence[NewTask]) -> None:
        self.tasks = tasks
        self.kinds: dict[tuple[Any, ...], int] = {}
        self.kind_of: list[int] = []
        for task in tasks:
            kind = (
                task.queue,
                task.type,
                task.capabilities,
                task.level,
                task.delay,
                task.run_at,
                task.expires_at,
                task.timeout,
                task.max_retries,
                None if task.spec is PLAIN else task.spec.encode(),
            )
            self.kind_of.append(self.kinds.setdefault(kind, len(self.kinds) + 1))

    @property
    def streams(self) -> set[Stream]:
        """Where they go."""
        return {
            ((queue, type, capabilities), level)
            for queue, type, capabilities, level, *_ in self.kinds
        }

    def insert(self, known: Known) -> Flow[tuple[list[Accepted], bool]]:
        """Store them all; answers also whether anyone waits for some."""
        columns = [list(column) for column in zip(*self.kinds, strict=True)]
        queues, types, capabilities, levels, delays, *options = columns
        lanes = zip(queues, types, capabilities, strict=True)
        keys = [task.idempotency_key for task in self.tasks]
        task_ids = [task.task_id for task in self.tasks]
        payloads = [task.payload for task in self.tasks]
        lengths = list(map(len, payloads))
        ((now, awaited),) = yield Query(
            _SUBMIT_SOME_FOR_LATER if any(delays) or any(options[0]) else _SUBMIT,
            (
                array_of_ids(task_ids),
                array(self.kind_of),
                b"".join(payloads),
                _or_none(keys),
                [known.ids[lane] for lane in lanes],
                levels,
                [int(delay * MICROSECONDS) for delay in delays],
                *(_or_none(column) for column in options),
                WAITERS,
                array(accumulate(lengths)),
                array(lengths),
            ),
        )
        run_ats = options[0]
        states = [_state(*terms, now) for terms in zip(delays, run_ats, strict=True)]
        accepted = [
            Accepted(task_id, states[kind - 1], now)
            for task_id, kind in zip(task_ids, self.kind_of, strict=True)
        ]
        return accepted, awaited


def _or_none(column: list[Any]) -> list[Any] | None:
    """A column of nothing but NULL costs nothing if it is not sent."""
    return None if column[0] is None and not any(column) else column


def _state(delay: float, run_at: int | None, now: int) -> State:
    if run_at is None:
        run_at = now + int(delay * MICROSECONDS)
    return State.SCHEDULED if run_at > now else State.QUEUED
