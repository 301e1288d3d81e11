"""Which tasks of a batch are stored, and the replies for the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairlane.core.errors import DuplicateTask, IdempotencyConflict
from fairlane.core.model import Accepted, NewTask
from fairlane.core.uniqueness import Hold, Mode
from fairlane.engines.postgres.admission_keys import KeysFound


class Admission:
    """Decides what happens to each task of a batch, in the order of the batch.

    `fresh` are to be stored. `known` are the replies for tasks that are stored already, by id.
    `repeats` get the reply for an earlier task of the batch. `replaced` are to be cancelled. `keys`
    and `uniques` are the tasks that are to hold a key.
    """

    def __init__(self, keys: KeysFound[str], uniques: KeysFound[bytes]) -> None:
        self.found_keys = keys
        self.found_uniques = uniques
        self.fresh: list[NewTask] = []
        self.known: dict[str, Accepted] = {}
        self.repeats: dict[str, str] = {}
        self.replaced: list[str] = []
        self.keys: dict[str, NewTask] = {}
        self.uniques: dict[bytes, NewTask] = {}

    def decide(self, tasks: Sequence[NewTask], stored: Mapping[str, Accepted]) -> None:
        """Decide about tasks; `stored` are the replies for those that are in the store already."""
        for task in tasks:
            if task.task_id in stored:
                self.known[task.task_id] = stored[task.task_id]
            elif not self._answer_by_key(task) and not self._answer_by_unique(task, task.unique):
                self._admit(task)

    def _answer_by_key(self, task: NewTask) -> bool:
        """Reply with the task that holds the idempotency key. Return whether there is one."""
        key = task.idempotency_key
        if key is None:
            return False
        if key in self.keys:
            _check_same(task, self.keys[key].fingerprint)
            self.repeats[task.task_id] = self.keys[key].task_id
        elif key in self.found_keys.holders:
            holder = self.found_keys.holders[key]
            _check_same(task, holder.fingerprint)
            self.known[task.task_id] = holder.answer
        else:
            return False
        return True

    def _answer_by_unique(self, task: NewTask, hold: Hold | None) -> bool:
        """Reply with the task that holds the unique key, or replace it. Return whether to reply."""
        if hold is None:
            return False
        if hold.key in self.uniques:
            if hold.mode is not Mode.EXISTING:
                raise DuplicateTask
            self.repeats[task.task_id] = self.uniques[hold.key].task_id
            return True
        holder = self.found_uniques.holders.get(hold.key)
        if holder is None:
            return False
        double = holder.answer
        if not hold.blocks(double.state, double.created_at, self.found_uniques.now):
            return False
        if hold.mode is Mode.EXISTING:
            self.known[task.task_id] = double
            return True
        if not hold.replaces(double.state):
            raise DuplicateTask
        self.replaced.append(double.task_id)
        return False

    def _admit(self, task: NewTask) -> None:
        self.fresh.append(task)
        if task.idempotency_key is not None:
            self.keys[task.idempotency_key] = task
        if task.unique is not None:
            self.uniques[task.unique.key] = task

    def answers(self, tasks: Sequence[NewTask], accepted: Sequence[Accepted]) -> list[Accepted]:
        """Return the reply for each task; `accepted` are the replies for fresh ones."""
        found = self.known | {answer.task_id: answer for answer in accepted}
        for task_id, first in self.repeats.items():
            found[task_id] = Accepted(
                first, found[first].state, found[first].created_at, known=True
            )
        return [found[task.task_id] for task in tasks]


def _check_same(task: NewTask, fingerprint: bytes | None) -> None:
    if task.fingerprint != fingerprint:
        raise IdempotencyConflict
