"""Ticks in the log: each one that was not fired is a line that says why.

A tick that was lost, or that the store refused, is a WARNING, and so is a schedule that was paused
because its tasks failed. The others are as their policy wants it: INFO. What repeats is summarised:
see `Repeats`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from fairlane.core.model import moment
from fairlane.core.schedules import Outcome, ScheduleRun
from fairlane.telemetry.logs import FIELDS
from fairlane.telemetry.repeats import Repeats

logger: Final = logging.getLogger("fairlane.schedules")

NOT_FIRED: Final = frozenset(Outcome) - {Outcome.FIRED, Outcome.MANUAL}


class Kind(NamedTuple):
    """Ticks of one kind are summarised together."""

    schedule_id: str
    outcome: Outcome


class TickLog:
    """Logs the ticks that one process handled and did not fire."""

    def __init__(self, repeats: Repeats[Kind] | None = None) -> None:
        self._repeats: Repeats[Kind] = Repeats() if repeats is None else repeats
        self._unknown: set[str] = set()

    def log(self, handled: Iterable[tuple[str, ScheduleRun]]) -> None:
        """Log those of these ticks that were not fired."""
        for schedule_id, run in handled:
            level = _level(run)
            if run.outcome not in NOT_FIRED or not logger.isEnabledFor(level):
                continue
            if self._repeats.passes(Kind(schedule_id, run.outcome)):
                words = ("Schedule %s did not fire %s: %s", schedule_id, _ticks(run), why(run))
                logger.log(level, *words, extra={FIELDS: _fields(schedule_id, run)})

    def log_unknown(self, problems: Mapping[str, str]) -> None:
        """Log why this process does not fire some schedules, once for each of them."""
        for schedule_id in problems.keys() - self._unknown:
            words = ("Schedule %s is not fired here: %s", schedule_id, problems[schedule_id])
            fields = {"event": "schedule_unknown", "schedule_id": schedule_id}
            logger.warning(*words, extra={FIELDS: fields})
        self._unknown |= problems.keys()

    def summarise(self) -> None:
        """Log how many were left out in periods that are over."""
        for kind, count, seconds in self._repeats.take_ended():
            like = "of further schedules"
            if kind is not None:
                like = f"of schedule {kind.schedule_id} ({kind.outcome})"
            logger.info("… and %s more %s in the last %.0f s", f"{count:,}", like, seconds)


def why(run: ScheduleRun) -> str:
    """Return why a tick was not fired, as the end of a sentence."""
    match run.outcome:
        case Outcome.OVERLAP if run.task_id is not None:
            return f"task {run.task_id} of an earlier tick has not ended"
        case Outcome.OVERLAP:
            return "a later tick replaces it"
        case Outcome.MISSED:
            return "nobody fired it in time"
        case Outcome.PAUSED:
            return run.reason or "the schedule was paused"
        case _:
            return f"the store refused it: {run.reason}"


def _level(run: ScheduleRun) -> int:
    lost = run.outcome in {Outcome.MISSED, Outcome.REFUSED}
    failing = run.outcome is Outcome.PAUSED and run.reason
    return logging.WARNING if lost or failing else logging.INFO


def _ticks(run: ScheduleRun) -> str:
    at = f"{moment(run.tick):%Y-%m-%d %H:%M:%S} UTC"
    return f"the tick of {at}" if run.count == 1 else f"{run.count:,} ticks until {at}"


def _fields(schedule_id: str, run: ScheduleRun) -> dict[str, object]:
    """Return what a line of JSON has besides its message."""
    return {
        "event": "schedule_skipped",
        "schedule_id": schedule_id,
        "tick": moment(run.tick).isoformat(),
        "outcome": run.outcome.value,
        "count": run.count,
        "reason": run.reason,
    }
