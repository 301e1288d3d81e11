"""Transitions of tasks in the log: what a worker claims, starts and settles.

They are logged only on request: the logger "fairlane.transitions" is at WARNING until `enable`, or
the program itself, sets it to INFO.

A worker claims and settles up to a thousand tasks at once, and `logging` takes longer over a record
than the worker over a task. So tasks that differ only in their id share a line of JSON, with lists
of their ids (docs/decisions/0014), and all lines of a batch are written at once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, repeat
from operator import attrgetter
from typing import Any, Final

import msgspec

from fairlane.core.machine import Move, Verb
from fairlane.core.model import Claimed
from fairlane.core.priority import shown_as
from fairlane.core.settlement import Settlement
from fairlane.telemetry.logs import FIELDS, FINISHED, JsonFormatter, encode, stamp

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
MANY: Final = 10
"""From this number on, tasks share a line."""
MOST: Final = 100
"""The most tasks on one line: Docker cuts lines at 16 KB."""
_KINDS: Final = 1_000
"""How many kinds of lines are remembered."""
_kind: Final = attrgetter("spec", "type", "queue", "level", "attempt")
_MESSAGE: Final = "%s %s %s, attempt %d"
_DURATION: Final = "duration_seconds"

Durations = Sequence[float | None]


def enabled() -> bool:
    """Return whether transitions are logged."""
    return logger.isEnabledFor(logging.INFO)


def enable() -> None:
    """Log transitions from now on."""
    logger.setLevel(logging.INFO)


class LoggedTransition(msgspec.Struct, frozen=True, gc=False):
    """One step of a task that a worker made."""

    event: str
    task: Claimed
    seconds: float | None = None
    more: Mapping[str, object] = {}

    def log(self) -> None:
        """Log it by itself."""
        logger.handle(self.record())

    def record(self) -> logging.LogRecord:
        """Return it as a record for handlers."""
        task = self.task
        arguments = (task.type, task.task_id, self.event, task.attempt)
        extra = {FIELDS: self._fields()}
        return logger.makeRecord(
            logger.name, logging.INFO, __file__, 0, _MESSAGE, arguments, None, extra=extra
        )

    def _fields(self) -> dict[str, object]:
        task = self.task
        fields: dict[str, object] = {
            "message": f"task {self.event}",  # the other fields say the rest
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
            fields[_DURATION] = round(self.seconds, 6)
        return {**fields, **self.more}


def settled(task: Claimed, settlement: Settlement, move: Move | None) -> LoggedTransition:
    """Return the transition of a settled run. Without a move the store refused to record it."""
    more: dict[str, object] = {}
    if move is None:
        return LoggedTransition("refused", task, settlement.seconds, more)
    if move.label:
        more["reason"] = move.label
    if move.error is not None and move.error.code is not None:
        # The code only: an error's message may contain anything.
        more["error_code"] = move.error.code
    if move.verb is Verb.RETRY:
        more["retry_in_seconds"] = round(move.after, 3)
    return LoggedTransition(_EVENTS[move.verb], task, settlement.seconds, more)


class TransitionLog:
    """Logs the transitions of many tasks at once, for one worker."""

    def __init__(self) -> None:
        self._lines: dict[tuple[object, ...], dict[str, Any]] = {}
        """Lines without time, id and duration: the rest is the same for all tasks of a kind."""

    def write(self, event: str, tasks: Sequence[Claimed], seconds: Durations | None = None) -> None:
        """Log the same step of several tasks; `seconds` are the durations of their runs."""
        handlers = _json_handlers() if tasks else []
        if handlers is None:
            for task, duration in zip(tasks, seconds or repeat(None), strict=False):
                LoggedTransition(event, task, duration).log()
            return
        for handler, formatter in handlers:
            lines = "\n".join(map(encode, self._objects(event, tasks, seconds, formatter)))
            finished = {"name": logger.name, "levelno": logging.INFO, "levelname": "INFO"}
            handler.handle(logging.makeLogRecord({**finished, FINISHED: lines}))

    def _objects(
        self,
        event: str,
        tasks: Sequence[Claimed],
        seconds: Durations | None,
        formatter: JsonFormatter,
    ) -> Iterator[dict[str, Any]]:
        now, start = stamp(time.time()), 0
        for (spec, *kind), alike in _groups(tasks):
            durations = None if seconds is None else seconds[start : start + len(alike)]
            start += len(alike)
            if spec.trace_id is None:
                like = self._like((formatter, event, *kind), formatter, event, alike[0])
                ids = [task.task_id for task in alike]
                lines = _shared if len(ids) >= MANY else _single
                yield from lines(like, now, ids, durations)
            else:
                for task, duration in zip(alike, durations or repeat(None), strict=False):
                    yield formatter.line(LoggedTransition(event, task, duration).record())

    def _like(
        self, kind: tuple[object, ...], formatter: JsonFormatter, event: str, task: Claimed
    ) -> dict[str, Any]:
        if kind not in self._lines:
            if len(self._lines) >= _KINDS:
                self._lines.clear()
            self._lines[kind] = formatter.line(LoggedTransition(event, task).record())
        return self._lines[kind]


def _groups(tasks: Sequence[Claimed]) -> list[tuple[Any, Sequence[Claimed]]]:
    """Return neighbours that differ only in their id. All tasks are those of one worker."""
    kinds = list(map(_kind, tasks))
    if kinds.count(kinds[0]) == len(kinds):  # the common case, in half the time
        return [(kinds[0], tasks)]
    return [(kind, list(group)) for kind, group in groupby(tasks, _kind)]


def _single(
    like: dict[str, Any], now: str, ids: list[str], seconds: Durations | None
) -> Iterator[dict[str, Any]]:
    for id, duration in zip(ids, seconds or repeat(None), strict=False):
        line = {**like, "time": now, "task_id": id, "trace_id": id.replace("-", "")}
        if duration is not None:
            line[_DURATION] = round(duration, 6)
        yield line


def _shared(
    like: dict[str, Any], now: str, ids: list[str], seconds: Durations | None
) -> Iterator[dict[str, Any]]:
    like = {**like, "time": now, "message": f"tasks {like['event']}"}
    del like["task_id"], like["trace_id"]
    for at in range(0, len(ids), MOST):
        some = ids[at : at + MOST]
        traces = ",".join(some).replace("-", "").split(",")
        line = {**like, "task_ids": some, "trace_ids": traces, "count": len(some)}
        if seconds is not None:
            line[_DURATION] = [
                None if each is None else int(each * 1e6 + 0.5) / 1e6  # twice as fast as round()
                for each in seconds[at : at + MOST]
            ]
        yield line


def _json_handlers() -> list[tuple[logging.Handler, JsonFormatter]] | None:
    """Return the handlers of a record, or None if one of them does more than write our JSON."""
    if logger.filters or not logger.isEnabledFor(logging.INFO):
        return None
    found = []
    source: logging.Logger | None = logger
    while source is not None:
        for handler in source.handlers:
            formatter = handler.formatter
            if type(handler) not in {logging.StreamHandler, logging.FileHandler} or handler.filters:
                return None
            if type(formatter) is not JsonFormatter:
                return None
            if handler.level <= logging.INFO:
                found.append((handler, formatter))
        source = source.parent if source.propagate else None
    return found or None
