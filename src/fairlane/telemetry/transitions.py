"""What a worker does to tasks, told in the log.

Only for those who ask for it: the logger "fairlane.transitions" says nothing below WARNING unless
it is told to.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

import msgspec

from fairlane.core.machine import Settlement, Verb
from fairlane.core.model import Claimed, Verdict
from fairlane.core.priority import shown_as
from fairlane.telemetry.logs import FIELDS

logger: Final = logging.getLogger("fairlane.transitions")
if logger.level == logging.NOTSET:
    logger.setLevel(logging.WARNING)

CLAIMED: Final = "claimed"
STARTED: Final = "started"
COMPLETED: Final = "completed"
_EVENTS: Final = {
    Verb.COMPLETE: COMPLETED,
    Verb.RETRY: "retrying",
    Verb.SNOOZE: "snoozed",
    Verb.RELEASE: "released",
    Verb.FAIL: "failed",
    Verb.DEAD_LETTER: "dead_letter",
}


def wanted() -> bool:
    """Whether somebody asked for these lines."""
    return logger.isEnabledFor(logging.INFO)


def ask_for_them() -> None:
    """From now on."""
    logger.setLevel(logging.INFO)


class Transition(msgspec.Struct, frozen=True, gc=False):
    """Something that a worker did to a task."""

    event: str
    task: Claimed
    seconds: float | None = None
    more: Mapping[str, object] = {}

    def log(self) -> None:
        logger.info(MESSAGE, *self._words(), extra={FIELDS: self._fields()})

    def record(self, *, shared: bool = False) -> logging.LogRecord:
        """What `log` would hand to handlers. `shared`: as if it were one of several."""
        fields = self._fields()
        if shared:
            fields["message"] = f"tasks {self.event}"
            for name in ("task_id", "trace_id"):
                fields[f"{name}s"] = [fields.pop(name)]
        extra = {FIELDS: fields}
        return logger.makeRecord(
            logger.name, logging.INFO, __file__, 0, MESSAGE, self._words(), None, extra=extra
        )

    def _words(self) -> tuple[object, ...]:
        task = self.task
        return task.type, task.task_id, self.event, task.attempt

    def _fields(self) -> dict[str, object]:
        task = self.task
        fields: dict[str, object] = {
            "message": f"task {self.event}",  # the rest of it has fields of its own
            "event": self.event,
            "type": task.type,
            "queue": task.queue,
            "priority": shown_as(task.level),
            "attempt": task.attempt,
            "worker_id": task.worker_id,
            "task_id": task.task_id,
            "trace_id": task.trace_id,
        }
        if self.seconds is not None:
            fields[DURATION] = round(self.seconds, 6)
        return {**fields, **self.more}


MESSAGE: Final = "%s %s %s, attempt %d"
DURATION: Final = "duration_seconds"


def settled(task: Claimed, settlement: Settlement, verdict: Verdict | None) -> Transition:
    """The store has heard how a run ended. No verdict: it would not hear of it."""
    change = settlement.change
    more: dict[str, object] = {}
    if change.reason is not None:
        more["reason"] = change.reason
    if change.error is not None and change.error.code is not None:
        # Not its message: that may say anything.
        more["error_code"] = change.error.code
    if change.verb is Verb.RETRY:
        more["retry_in_seconds"] = round(change.after, 3)
    event = _EVENTS[change.verb] if verdict is Verdict.APPLIED else "refused"
    return Transition(event, task, settlement.seconds, more)
