"""Idempotency keys and unique keys: who has those that a batch of tasks asks for.

Keys that nobody has are taken at once, for the first task that asks, so that of several who ask at
the same time the others wait. Which task of the batch a key is for in the end is noted later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from fairlane.core import limits
from fairlane.core.flow import Flow
from fairlane.core.model import Accepted, NewTask
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import State
from fairlane.core.uniqueness import Mode
from fairlane.engines.postgres.calls import Query
from fairlane.engines.postgres.rows import array_of_ids
from fairlane.engines.postgres.statements import load

SQL = load("admission_keys")

K = TypeVar("K", str, bytes)


class Holder(NamedTuple):
    """A task that has a key, as an answer for others that ask for it."""

    answer: Accepted
    fingerprint: bytes | None = None


class Asked(NamedTuple, Generic[K]):
    """What was found at a time: tasks that have keys, and the tasks for which keys were taken."""

    holders: dict[K, Holder]
    taken: dict[K, NewTask]
    now: int = 0

    def changes(self, owners: Mapping[K, NewTask]) -> tuple[dict[K, NewTask], list[K]]:
        """What is to be noted once it is known whom keys are for: new owners, and keys unused."""
        changed = {key: task for key, task in owners.items() if self.taken.get(key) is not task}
        return changed, [key for key in self.taken if key not in owners]


def stored(task_ids: Sequence[str]) -> Flow[dict[str, Accepted]]:
    """Those of these tasks that are in the store, as answers."""
    rows = yield Query(SQL["stored"], (array_of_ids(task_ids),))
    return {row[0]: _answer(*row) for row in rows}


def _answer(task_id: str, state: int, created_at: int) -> Accepted:
    return Accepted(task_id, State.of(state), created_at, known=True)


def ask_for_keys(tasks: Iterable[NewTask]) -> Flow[Asked[str]]:
    """Who has the idempotency keys of these tasks."""
    first: dict[str, NewTask] = {}
    for task in tasks:
        if task.idempotency_key is not None:
            first.setdefault(task.idempotency_key, task)
    asked = Asked[str]({}, {})
    left = sorted(first)
    while left:
        rows = yield Query(SQL["take_keys"], _columns({key: first[key] for key in left}))
        asked.taken.update({key: first[key] for (key,) in rows})
        left = [key for key in left if key not in asked.taken]
        if left:
            asked.holders.update((yield from _key_holders(left)))
            left = [key for key in left if key not in asked.holders]
        if left:
            # Their tasks have been deleted: such a key is for whoever gets to lock it first.
            rows = yield Query(SQL["lock_keys"], (left,))
            locked = {key for (key,) in rows}
            asked.holders.update((yield from _key_holders(locked)))
            left = [key for key in left if key not in locked]
    return asked


def _key_holders(keys: Iterable[str]) -> Flow[dict[str, Holder]]:
    rows = yield Query(SQL["key_holders"], (list(keys),))
    return {key: Holder(_answer(*task), fingerprint) for key, fingerprint, *task in rows}


def give_keys(asked: Asked[str], owners: Mapping[str, NewTask]) -> Flow[None]:
    """Note whom the idempotency keys are for."""
    changed, unused = asked.changes(owners)
    if changed:
        yield Query(SQL["inherit_keys"], _columns(changed))
    if unused:
        yield Query(SQL["drop_keys"], (unused,))


def _columns(asked: Mapping[str, NewTask]) -> tuple[Any, ...]:
    return (
        list(asked),
        array_of_ids([task.task_id for task in asked.values()]),
        [task.fingerprint for task in asked.values()],
        limits.IDEMPOTENCY_SECONDS * MICROSECONDS,
    )


def ask_for_uniques(tasks: Iterable[NewTask]) -> Flow[Asked[bytes]]:
    """Who has the unique keys of these tasks.

    A double that is only to be named is read without a lock, so that nobody waits for it.
    """
    alike: dict[bytes, list[NewTask]] = {}
    for task in tasks:
        if task.unique is not None:
            alike.setdefault(task.unique.key, []).append(task)
    if not alike:
        return Asked({}, {})
    asked = yield from _unique_holders(alike)
    left = [key for key in sorted(alike) if not _only_named(alike[key], asked)]
    while left:
        ids = array_of_ids([alike[key][0].task_id for key in left])
        rows = yield Query(SQL["take_uniques"], (left, ids))
        asked.taken.update({key: alike[key][0] for (key,) in rows})
        left = [key for key in left if key not in asked.taken]
        if left:
            rows = yield Query(SQL["lock_uniques"], (left,))
            locked = {key for (key,) in rows}
            # Others may have come before us. Those that are gone meanwhile are asked for once more.
            found = yield from _unique_holders(locked)
            kept = {key: each for key, each in asked.holders.items() if key not in locked}
            asked = Asked(kept | found.holders, asked.taken, max(asked.now, found.now))
            left = [key for key in left if key not in locked]
    holders = {key: each for key, each in asked.holders.items() if key not in asked.taken}
    return Asked(holders, asked.taken, asked.now)


def _unique_holders(keys: Iterable[bytes]) -> Flow[Asked[bytes]]:
    rows = yield Query(SQL["unique_holders"], (list(keys),))
    holders = {key: Holder(_answer(*task)) for key, *task, _ in rows}
    return Asked(holders, {}, max((row[-1] for row in rows), default=0))


def _only_named(tasks: list[NewTask], asked: Asked[bytes]) -> bool:
    """Whether all that these tasks, under one key, want is the name of the one that has it."""
    for task in tasks:
        if task.unique is None or task.unique.key not in asked.holders:
            return False
        answer = asked.holders[task.unique.key].answer
        if task.unique.mode is not Mode.EXISTING or not task.unique.blocks(
            answer.state, answer.created_at, asked.now
        ):
            return False
    return True


def give_uniques(asked: Asked[bytes], owners: Mapping[bytes, NewTask]) -> Flow[None]:
    """Note whom the unique keys are for."""
    changed, unused = asked.changes(owners)
    if changed:
        ids = array_of_ids([task.task_id for task in changed.values()])
        yield Query(SQL["inherit_uniques"], (list(changed), ids))
    if unused:
        yield Query(SQL["drop_uniques"], (unused,))
