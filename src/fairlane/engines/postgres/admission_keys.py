"""Idempotency keys and unique keys: which tasks hold those that a batch needs.

A key that is free is taken at once, for the first task of the batch that needs it: other
transactions that need it then wait. Once it is decided which task of the batch gets the key,
`assign_keys` and `assign_uniques` write that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from fairlane.core import limits
from fairlane.core.flow import Flow
from fairlane.core.model import Accepted, NewTask
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import State
from fairlane.core.submission import check_repeated, inputs_of
from fairlane.core.uniqueness import Mode
from fairlane.engines.postgres.calls import Query
from fairlane.engines.postgres.rows import array_of_ids
from fairlane.engines.postgres.statements import load

SQL = load("admission_keys")

K = TypeVar("K", str, bytes)


class Holder(NamedTuple):
    """A task that holds a key, as the reply for others that need the key."""

    answer: Accepted
    fingerprint: bytes | None = None


class KeysFound(NamedTuple, Generic[K]):
    """The tasks that hold keys at the time `now`, and the tasks for which keys were taken."""

    holders: dict[K, Holder]
    taken: dict[K, NewTask]
    now: int = 0

    def changes(self, owners: Mapping[K, NewTask]) -> tuple[dict[K, NewTask], list[K]]:
        """Return what to write once the owners are known: new owners, and unused keys."""
        changed = {key: task for key, task in owners.items() if self.taken.get(key) is not task}
        return changed, [key for key in self.taken if key not in owners]


def find_stored(task_ids: Sequence[str]) -> Flow[dict[str, Accepted]]:
    """Return the replies for those of these tasks that are in the store."""
    rows = yield Query(SQL["stored"], (array_of_ids(task_ids),))
    return {row[0]: _answer(*row) for row in rows}


def check_stored(tasks: Iterable[NewTask]) -> Flow[None]:
    """Raise TaskIdConflict if a task is not the one that is stored under its id."""
    by_id = {task.task_id: task for task in tasks}
    rows = yield Query(SQL["contents"], (array_of_ids(list(by_id)),))
    for task_id, type, payload, spec in rows:
        check_repeated(by_id[task_id], type, payload, inputs_of(spec))


def _answer(task_id: str, state: int, created_at: int) -> Accepted:
    return Accepted(task_id, State.of(state), created_at, known=True)


def take_keys(tasks: Iterable[NewTask]) -> Flow[KeysFound[str]]:
    """Take the idempotency keys of these tasks. Return what was found."""
    first: dict[str, NewTask] = {}
    for task in tasks:
        if task.idempotency_key is not None:
            first.setdefault(task.idempotency_key, task)
    found = KeysFound[str]({}, {})
    left = sorted(first)
    while left:
        rows = yield Query(SQL["take_keys"], _columns({key: first[key] for key in left}))
        found.taken.update({key: first[key] for (key,) in rows})
        left = [key for key in left if key not in found.taken]
        if left:
            found.holders.update((yield from _key_holders(left)))
            left = [key for key in left if key not in found.holders]
        if left:
            # Their tasks were deleted: the first transaction that locks such a key gets it.
            rows = yield Query(SQL["lock_keys"], (left,))
            locked = {key for (key,) in rows}
            found.holders.update((yield from _key_holders(locked)))
            left = [key for key in left if key not in locked]
    return found


def _key_holders(keys: Iterable[str]) -> Flow[dict[str, Holder]]:
    rows = yield Query(SQL["key_holders"], (list(keys),))
    return {key: Holder(_answer(*task), fingerprint) for key, fingerprint, *task in rows}


def assign_keys(found: KeysFound[str], owners: Mapping[str, NewTask]) -> Flow[None]:
    """Write which tasks hold the idempotency keys."""
    changed, unused = found.changes(owners)
    if changed:
        yield Query(SQL["inherit_keys"], _columns(changed))
    if unused:
        yield Query(SQL["drop_keys"], (unused,))


def _columns(owners: Mapping[str, NewTask]) -> tuple[Any, ...]:
    return (
        list(owners),
        array_of_ids([task.task_id for task in owners.values()]),
        [task.fingerprint for task in owners.values()],
        limits.IDEMPOTENCY_SECONDS * MICROSECONDS,
    )


def take_uniques(tasks: Iterable[NewTask]) -> Flow[KeysFound[bytes]]:
    """Take the unique keys of these tasks. Return what was found.

    Where the reply is only the id of the task that holds the key, nothing is locked.
    """
    alike: dict[bytes, list[NewTask]] = {}
    for task in tasks:
        if task.unique is not None:
            alike.setdefault(task.unique.key, []).append(task)
    if not alike:
        return KeysFound({}, {})
    found = yield from _unique_holders(alike)
    left = [key for key in sorted(alike) if not _only_named(alike[key], found)]
    while left:
        ids = array_of_ids([alike[key][0].task_id for key in left])
        rows = yield Query(SQL["take_uniques"], (left, ids))
        found.taken.update({key: alike[key][0] for (key,) in rows})
        left = [key for key in left if key not in found.taken]
        if left:
            rows = yield Query(SQL["lock_uniques"], (left,))
            locked = {key for (key,) in rows}
            # Others may have taken them before. Keys that were freed meanwhile are tried again.
            latest = yield from _unique_holders(locked)
            kept = {key: each for key, each in found.holders.items() if key not in locked}
            found = KeysFound(kept | latest.holders, found.taken, max(found.now, latest.now))
            left = [key for key in left if key not in locked]
    holders = {key: each for key, each in found.holders.items() if key not in found.taken}
    return KeysFound(holders, found.taken, found.now)


def _unique_holders(keys: Iterable[bytes]) -> Flow[KeysFound[bytes]]:
    rows = yield Query(SQL["unique_holders"], (list(keys),))
    holders = {key: Holder(_answer(*task)) for key, *task, _ in rows}
    return KeysFound(holders, {}, max((row[-1] for row in rows), default=0))


def _only_named(tasks: list[NewTask], found: KeysFound[bytes]) -> bool:
    """Return whether the reply to all these tasks, with one key, is the task that holds it."""
    for task in tasks:
        if task.unique is None or task.unique.key not in found.holders:
            return False
        answer = found.holders[task.unique.key].answer
        if task.unique.mode is not Mode.EXISTING or not task.unique.blocks(
            answer.state, answer.created_at, found.now
        ):
            return False
    return True


def assign_uniques(found: KeysFound[bytes], owners: Mapping[bytes, NewTask]) -> Flow[None]:
    """Write which tasks hold the unique keys."""
    changed, unused = found.changes(owners)
    if changed:
        ids = array_of_ids([task.task_id for task in changed.values()])
        yield Query(SQL["inherit_uniques"], (list(changed), ids))
    if unused:
        yield Query(SQL["drop_uniques"], (unused,))
