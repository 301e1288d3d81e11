"""Failures in the log: each attempt that fails is a line that says what happens next.

What ends badly is an ERROR with its traceback. What runs again is a WARNING without one, unless the
logger "fairlane.failures" is at DEBUG. Failures that repeat are summarised: see `Repeats`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Final, NamedTuple

from fairlane.core.machine import RETRIES_EXHAUSTED, TIMED_OUT, Move, Verb, decide
from fairlane.core.model import Claimed, Overdue, TaskError
from fairlane.core.settlement import Settled, Settlement
from fairlane.core.text import as_sentence
from fairlane.telemetry.logs import FIELDS
from fairlane.telemetry.repeats import Repeats

logger: Final = logging.getLogger("fairlane.failures")

SUMMARY_SECONDS: Final = 1.0
"""How often it looks for periods that are over."""
_LEVELS: Final = {
    Verb.RETRY: logging.WARNING,
    Verb.RELEASE: logging.WARNING,
    Verb.FAIL: logging.ERROR,
    Verb.DEAD_LETTER: logging.ERROR,
}

Run = Claimed | Overdue
"""A run that a worker has ended, or that the maintenance has."""


class Kind(NamedTuple):
    """Failures of one kind are summarised together."""

    type: str
    code: str | None
    verb: Verb


class FailureLog:
    """Logs the failures of one worker, or those that one maintenance finds."""

    def __init__(self, repeats: Repeats[Kind] | None = None) -> None:
        self._repeats: Repeats[Kind] = Repeats() if repeats is None else repeats

    def log(
        self, runs: Iterable[Run], settlements: Iterable[Settlement], answers: Iterable[Settled]
    ) -> None:
        """Log those runs that failed, by the store's answers to their settlements."""
        self.summarise()
        for run, settlement, answer in zip(runs, settlements, answers, strict=True):
            move = answer.move
            if move is None or move.verb not in _LEVELS:
                continue
            # A server does not send the errors that the core makes, such as that of a timeout.
            error = move.error or decide(run, settlement.outcome, settlement.jitter).error
            if error is not None:  # otherwise the worker gave the task back
                self._log(run, move, error)

    def summarise(self, *, all: bool = False) -> None:
        """Log how many failures were left out in periods that are over, or in all periods."""
        for kind, count, seconds in self._repeats.take_ended(all=all):
            level = logging.ERROR if kind is None else _LEVELS[kind.verb]
            like = "of further kinds" if kind is None else f"like it ({_shown(kind)})"
            logger.log(level, "… and %s more %s in the last %.0f s", f"{count:,}", like, seconds)

    async def run(self) -> None:
        """Log summaries until cancelled, and the last ones then."""
        try:
            while True:
                await asyncio.sleep(SUMMARY_SECONDS)
                self.summarise()
        finally:
            self.summarise(all=True)

    def _log(self, run: Run, move: Move, error: TaskError) -> None:
        level = _LEVELS[move.verb]
        kind = Kind(run.type, error.code, move.verb)
        if not logger.isEnabledFor(level) or not self._repeats.passes(kind):
            return
        code = "" if error.code is None else f"{error.code}: "
        words = (run.type, run.task_id, run.attempt, f"{code}{_line(error.message)}")
        message = "%s %s failed, attempt %d: %s %s"
        fields = _fields(run, move, error)
        record = logger.makeRecord(
            logger.name,
            level,
            __file__,
            0,
            message,
            (*words, _next(move)),
            None,
            extra={FIELDS: fields},
        )
        if level >= logging.ERROR or logger.isEnabledFor(logging.DEBUG):
            record.exc_text = error.traceback  # the exception itself is not kept
        logger.handle(record)


def _next(move: Move) -> str:
    """Return what happens to the task now."""
    if move.verb is Verb.RETRY:
        return f"Retry in {f'{move.after:,.1f}'.removesuffix('.0')} s."
    if move.verb is Verb.RELEASE:
        return "It runs again at once."
    if move.verb is Verb.FAIL:
        return "Failed: not retriable."
    exhausted = move.label in {RETRIES_EXHAUSTED, TIMED_OUT}
    return f"Dead letter: {'retries used up' if exhausted else 'lost too often'}."


def _fields(run: Run, move: Move, error: TaskError) -> dict[str, object]:
    """Return what a line of JSON has besides its message."""
    fields: dict[str, object] = {
        "event": move.state.value if move.verb is not Verb.RELEASE else "released",
        "type": run.type,
        "task_id": run.task_id,
        "attempt": run.attempt,
        "worker_id": run.worker_id,
        "error_code": error.code,
        "error": error.message,
    }
    if isinstance(run, Claimed):
        fields |= {"queue": run.queue, "trace_id": run.trace_id}
    if move.verb is Verb.RETRY:
        fields["retry_in_seconds"] = round(move.after, 3)
    elif move.label:
        fields["reason"] = move.label
    return fields


def _line(message: str) -> str:
    """Return an error's message on one line, as a sentence that another one can follow."""
    return as_sentence(" ".join(message.split()))


def _shown(kind: Kind) -> str:
    return ", ".join(each for each in (kind.type, kind.code, kind.verb.value) if each is not None)
