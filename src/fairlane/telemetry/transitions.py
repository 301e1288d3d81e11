"""A line in the log for each transition that a worker brings about.

Only for those who ask for it: the logger "fairlane.transitions" says nothing below WARNING unless
it is told to.
"""

from __future__ import annotations

import logging
from typing import Final

from fairlane.core.machine import Settlement, Verb
from fairlane.core.model import Claimed, Verdict
from fairlane.core.priority import shown_as
from fairlane.telemetry.logs import FIELDS

logger: Final = logging.getLogger("fairlane.transitions")
if logger.level == logging.NOTSET:
    logger.setLevel(logging.WARNING)

_EVENTS: Final = {
    Verb.COMPLETE: "completed",
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


def tell_claimed(task: Claimed) -> None:
    """A worker took a task."""
    _tell("claimed", task)


def tell_started(task: Claimed) -> None:
    """The store was told that its run has begun."""
    _tell("started", task)


def tell_completed(task: Claimed) -> None:
    """It was completed by a transaction of its own."""
    _tell("completed", task)


def tell_settled(task: Claimed, settlement: Settlement, verdict: Verdict | None) -> None:
    """The store has heard how a run ended. No verdict: it would not hear of it."""
    change = settlement.change
    fields: dict[str, object] = {}
    if settlement.seconds is not None:
        fields["duration_seconds"] = round(settlement.seconds, 6)
    if change.reason is not None:
        fields["reason"] = change.reason
    if change.error is not None and change.error.code is not None:
        # Not its message: that may say anything.
        fields["error_code"] = change.error.code
    if change.verb is Verb.RETRY:
        fields["retry_in_seconds"] = round(change.after, 3)
    event = _EVENTS[change.verb] if verdict is Verdict.APPLIED else "refused"
    _tell(event, task, **fields)


def _tell(event: str, task: Claimed, **more: object) -> None:
    fields = {
        "event": event,
        "task_id": task.task_id,
        "type": task.type,
        "queue": task.queue,
        "priority": shown_as(task.level),
        "attempt": task.attempt,
        "worker_id": task.worker_id,
        "trace_id": task.trace_id,
        **more,
    }
    logger.info(
        "%s %s %s, attempt %d", task.type, task.task_id, event, task.attempt, extra={FIELDS: fields}
    )
