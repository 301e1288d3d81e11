"""Which tasks of a batch are stored, and what the others are answered: decided one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairlane.core.errors import DuplicateTask, IdempotencyConflict
from fairlane.core.model import Accepted, NewTask
from fairlane.core.uniqueness import Hold, Mode
from fairlane.engines.postgres.admission_keys import Asked


class Admission:
    """What becomes of each task of a batch, in the order of the batch.

    `fresh` are to be stored, `known` have an answer, `twins` are answered like an earlier task of
    the batch, `replaced` are to be cancelled. `keys` and `uniques` say whom a key is for.
    """

    def __init__(self, keys: Asked[str], uniques: Asked[bytes]) -> None:
        self.asked_keys = keys
        self.asked_uniques = uniques
        self.fresh: list[NewTask] = []
        self.known: dict[str, Accepted] = {}
        self.twins: dict[str, str] = {}
        self.replaced: list[str] = []
        self.keys: dict[str, NewTask] = {}
        self.uniques: dict[bytes, NewTask] = {}

    def decide(self, tasks: Sequence[NewTask], stored: Mapping[str, Accepted]) -> None:
        """Look at the tasks; `stored` are those that are in the store already."""
        for task in tasks:
            if task.task_id in stored:
                self.known[task.task_id] = stored[task.task_id]
            elif not self._is_repeated(task) and not self._is_double(task, task.unique):
                self._admit(task)

    def _is_repeated(self, task: NewTask) -> bool:
        key = task.idempotency_key
        if key is None:
            return False
        if key in self.keys:
            _check_same(task, self.keys[key].fingerprint)
            self.twins[task.task_id] = self.keys[key].task_id
        elif key in self.asked_keys.holders:
            holder = self.asked_keys.holders[key]
            _check_same(task, holder.fingerprint)
            self.known[task.task_id] = holder.answer
        else:
            return False
        return True

    def _is_double(self, task: NewTask, hold: Hold | None) -> bool:
        if hold is None:
            return False
        if hold.key in self.uniques:
            if hold.mode is not Mode.EXISTING:
                raise DuplicateTask
            self.twins[task.task_id] = self.uniques[hold.key].task_id
            return True
        holder = self.asked_uniques.holders.get(hold.key)
        if holder is None:
            return False
        double = holder.answer
        if not hold.blocks(double.state, double.created_at, self.asked_uniques.now):
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
        """One for each task; `accepted` are those of the fresh ones."""
        found = self.known | {answer.task_id: answer for answer in accepted}
        for task_id, first in self.twins.items():
            found[task_id] = Accepted(
                first, found[first].state, found[first].created_at, known=True
            )
        return [found[task.task_id] for task in tasks]


def _check_same(task: NewTask, fingerprint: bytes | None) -> None:
    if task.fingerprint != fingerprint:
        raise IdempotencyConflict
