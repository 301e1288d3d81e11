"""An engine's operations with what they store sealed, and what they answer opened.

Those that carry payloads, results, schedules or blobs are methods here; those in `PLAIN` are the
engine's own. Any other operation does not exist here, so none is stored in plain text by oversight.
Sealing never fails, and what cannot be opened is answered as it is stored: looking at tasks takes
no key. Whoever is to use such a value refuses it (`fairlane.core.sealing.check_open`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar, cast

import msgspec

from fairlane.core import sealing
from fairlane.core.filters import Filter, Page, PageRoom, cursor_of
from fairlane.core.flow import TURN, Flow, Op
from fairlane.core.model import Accepted, Ask, Claimed, Grant, NewTask, Task
from fairlane.core.outcomes import Completed
from fairlane.core.schedules import Missed, NewSchedule, Schedule
from fairlane.core.scheduling import SchedulePage
from fairlane.core.sealing import Key
from fairlane.core.settlement import Settled, Settlement
from fairlane.core.store import Operations
from fairlane.core.submission import same_payload
from fairlane.core.uniqueness import Hold
from fairlane.engines.compression.results import expand
from fairlane.engines.sealing.driver import Keyring, Part

T = TypeVar("T")
U = TypeVar("U")

replace = msgspec.structs.replace


PLAIN = frozenset(
    {
        # Store
        *("start", "progress", "heartbeat", "disown", "move_due", "expired", "prune", "sample"),
        *("elect", "watch_clock", "bring_back", "drop_lanes"),
        # Inspect
        *(
            "heads",
            "workers",
            "holdings",
            "controls",
            "settings",
            "encryption",
            "definition",
            "definitions",
            "definition_page",
            "events",
            "tail",
            "find",
            "facts",
            "samples",
            "tokens",
            "token",
        ),
        *("due_schedules", "tick_counts"),
        *("old_blobs", "audit", "completions", "total", "stats", "position", "why", "dlq_analysis"),
        *("workflow", "workflow_page", "watch_workflows", "reopen_workflow"),
        *("forget_workflow", "workflow_id_for", "workflow_news"),
        # Control
        *(
            "pause",
            "limit",
            "change_settings",
            "set_encryption",
            "publish",
            "drop_definition",
            "take_quota",
            "take_lanes",
            "cancel",
            "cancel_workflow",
            "resume_workflow",
            "delete_workflow",
            "rerun",
            "replay",
            "delete",
            "cancel_where",
            "replay_where",
        ),
        *("delete_where", "put_token", "retire_token", "drop_token"),
        *("sweep_schedules", "drop_schedule", "run_schedule", "backfill_schedule", "fire_due"),
        *(
            "drop_blob",
            "blob_owner",
            "record",
            "trim_audit",
            "reserve",
            "register",
            "mark",
            "bury",
            "forget",
        ),
        # Schema and Clock
        *("version", "migrate", "verify", "publish_view", "shift_clock"),
    }
)
"""Operations that carry nothing that is sealed."""


def sealing_operations(ops: Operations, keys: Sequence[Key]) -> Operations:
    """The same operations for a store that is to hold no plain text."""
    return cast(Operations, _SealingOperations(ops, Keyring(keys)))


class _SealingOperations:
    def __init__(self, ops: Operations, keyring: Keyring) -> None:
        self._ops = ops
        self._keyring = keyring
        for name in PLAIN:
            setattr(self, name, getattr(ops, name))

    # -- in ----------------------------------------------------------------------------------------

    def submit(self, tasks: Sequence[NewTask]) -> Op[list[Accepted]]:
        return self._ops.submit([self._sealed_task(task) for task in tasks])

    def submit_workflow(self, tasks: Sequence[NewTask]) -> Op[list[Accepted]]:
        return self._ops.submit_workflow([self._sealed_task(task) for task in tasks])

    def settle(
        self, settlements: Sequence[Settlement], *, reaping: bool = False
    ) -> Op[list[Settled]]:
        return self._ops.settle(
            [self._sealed_result(each) for each in settlements], reaping=reaping
        )

    def put_schedules(
        self,
        schedules: Sequence[NewSchedule],
        *,
        owner: str | None = None,
        version: int | None = None,
        allow_unknown_type: bool = True,
    ) -> Op[list[Schedule]]:
        sealed = [self._sealed_schedule(each) for each in schedules]
        op = self._ops.put_schedules(
            sealed, owner=owner, version=version, allow_unknown_type=allow_unknown_type
        )
        return _mapped(op, self._opened_schedules)

    def put_blob(self, key: str, content: bytes) -> Op[None]:
        return self._ops.put_blob(key, self._keyring.seal_blob(key, content))

    def _sealed_schedule(self, schedule: NewSchedule) -> NewSchedule:
        """The payload is sealed for the schedule and its tasks: firing them takes no key."""
        sealing.check_reserved(schedule.payload)
        return replace(
            schedule,
            payload=self._keyring.seal(Part.SCHEDULE, schedule.schedule_id, schedule.payload),
            fingerprint=self._keyring.digest_with_key(schedule.fingerprint),
        )

    def _sealed_task(self, task: NewTask) -> NewTask:
        sealing.check_reserved(task.payload)
        return replace(
            task,
            payload=self._keyring.seal(Part.PAYLOAD, task.task_id, task.payload),
            fingerprint=None
            if task.fingerprint is None
            else self._keyring.digest(task.fingerprint),
            unique=None if task.unique is None else self._digested(task.unique),
            matches=partial(self._is_sealed_payload, task),
        )

    def _is_sealed_payload(self, task: NewTask, stored: bytes) -> bool:
        return same_payload(task.payload, self._keyring.open(Part.PAYLOAD, task.task_id, stored))

    def _digested(self, unique: Hold) -> Hold:
        return replace(unique, key=self._keyring.digest(unique.key))

    def _sealed_result(self, settlement: Settlement) -> Settlement:
        outcome = settlement.outcome
        if not isinstance(outcome, Completed):
            return settlement
        sealed = self._keyring.seal(Part.RESULT, settlement.task_id, outcome.result)
        matches = partial(self._is_sealed_result, settlement.task_id, outcome.result)
        return replace(settlement, outcome=Completed(sealed), matches=matches)

    def _is_sealed_result(self, task_id: str, result: bytes, stored: bytes) -> bool:
        """One whose key is not known here is taken for the same."""
        opened = self._keyring.open(Part.RESULT, task_id, stored)
        found = sealing.parsed(opened)
        if found is not None:
            return not found.broken
        return same_payload(expand(opened), expand(result))

    # -- out ---------------------------------------------------------------------------------------

    def claim(self, ask: Ask) -> Op[Grant]:
        return _mapped(self._ops.claim(ask), self._opened_grant)

    def get(self, task_ids: Sequence[str]) -> Op[list[Task | None]]:
        return _mapped_in_turns(self._ops.get(task_ids), self._opened_tasks)

    def page(self, filter: Filter, limit: int, cursor: str | None = None) -> Op[Page]:
        return _mapped_in_turns(self._ops.page(filter, limit, cursor), self._opened_page)

    def schedules(self, schedule_ids: Sequence[str]) -> Op[list[Schedule | None]]:
        def opened(found: list[Schedule | None]) -> list[Schedule | None]:
            return [None if each is None else self._opened_schedule(each) for each in found]

        return _mapped(self._ops.schedules(schedule_ids), opened)

    def schedule_page(self, cursor: str | None = None, limit: int = 100) -> Op[SchedulePage]:
        def opened(page: SchedulePage) -> SchedulePage:
            return replace(page, schedules=self._opened_schedules(page.schedules))

        return _mapped(self._ops.schedule_page(cursor, limit), opened)

    def pause_schedule(
        self, schedule_id: str, *, note: str = "", until: int | None = None
    ) -> Op[Schedule]:
        op = self._ops.pause_schedule(schedule_id, note=note, until=until)
        return _mapped(op, self._opened_schedule)

    def resume_schedule(self, schedule_id: str, *, missed: Missed = Missed.SKIP) -> Op[Schedule]:
        op = self._ops.resume_schedule(schedule_id, missed=missed)
        return _mapped(op, self._opened_schedule)

    def blob(self, key: str) -> Op[bytes | None]:
        def opened(content: bytes | None) -> bytes | None:
            return None if content is None else self._keyring.open_blob(key, content)

        return _mapped(self._ops.blob(key), opened)

    def _opened_grant(self, grant: Grant) -> Grant:
        return replace(grant, tasks=[self._opened_claim(task) for task in grant.tasks])

    def _opened_claim(self, task: Claimed) -> Claimed:
        return replace(task, payload=self._opened_payload(task, task.spec.schedule_id))

    def _opened_tasks(self, tasks: list[Task | None]) -> Flow[list[Task | None]]:
        found: list[Task | None] = []
        for task in tasks:
            opened = None if task is None else (yield from self._opened_task(task))
            found.append(opened)
        return found

    def _opened_page(self, page: Page) -> Flow[Page]:
        """The page was measured while its results were compressed: it may have to end earlier."""
        tasks: list[Task] = []
        room = PageRoom()
        for each in page.tasks:
            task = yield from self._opened_task(each)
            if not room.takes(task):
                return Page(tasks, cursor_of(tasks[-1].task_id))
            tasks.append(task)
        return replace(page, tasks=tasks)

    def _opened_payload(self, task: Claimed | Task, schedule_id: str | None) -> bytes:
        """The payload of a schedule's task is the schedule's, as it was sealed for it."""
        if schedule_id is not None:
            return self._keyring.open(Part.SCHEDULE, schedule_id, task.payload)
        return self._keyring.open(Part.PAYLOAD, task.task_id, task.payload)

    def _opened_task(self, task: Task) -> Flow[Task]:
        payload, result = self._opened_payload(task, task.schedule_id), task.result
        if result is not None:
            stored = self._keyring.open(Part.RESULT, task.task_id, result)
            result = expand(stored)
            if result is not stored:
                yield TURN
        return replace(task, payload=payload, result=result)

    def _opened_schedules(self, schedules: list[Schedule]) -> list[Schedule]:
        return [self._opened_schedule(schedule) for schedule in schedules]

    def _opened_schedule(self, schedule: Schedule) -> Schedule:
        plain = self._keyring.open(Part.SCHEDULE, schedule.schedule_id, schedule.payload)
        return replace(schedule, payload=plain)


def _mapped(op: Op[T], read: Callable[[T], U]) -> Op[U]:
    """An operation whose answer is read on the way out."""

    def start() -> Flow[U]:
        return read((yield from op.flow()))

    return Op(op.name, op.mode, start)


def _mapped_in_turns(op: Op[T], read: Callable[[T], Flow[U]]) -> Op[U]:
    """The same, if reading takes long."""

    def start() -> Flow[U]:
        return (yield from read((yield from op.flow())))

    return Op(op.name, op.mode, start)
