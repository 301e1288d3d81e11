"""What `doctor` checks about schedules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from fairlane.cli.checks import Check, CheckStatus
from fairlane.cli.render import span
from fairlane.core.backend import Backend
from fairlane.core.firing import due_at
from fairlane.core.priority import MICROSECONDS
from fairlane.core.schedules import Outcome, Schedule

LATE_SECONDS: Final = 10.0
NAMES: Final = 10
"""How many schedules a line names."""


async def check_schedules(backend: Backend, now: int) -> list[Check]:
    """Name the schedules that are late, keep failing, or were refused. `now`: the store's time."""
    found: list[Schedule] = []
    cursor: str | None = None
    while True:
        page = await backend.run(backend.ops.schedule_page(cursor))
        found += page.schedules
        cursor = page.next_cursor
        if cursor is None:
            return list(_checks(found, now))


def _checks(schedules: Sequence[Schedule], now: int) -> Iterator[Check]:
    if not schedules:
        return
    paused = sum(each.standing.pause is not None for each in schedules)
    yield Check("schedules", CheckStatus.OK, f"{len(schedules):,}, of which {paused:,} are paused.")
    unknown = [each for each in schedules if each.problem is not None]
    if unknown:
        yield Check(
            "schedules",
            CheckStatus.WARNING,
            f"Not fired by processes like this one: {_names(unknown)}. Of the first one: "
            f"{unknown[0].problem}",
        )
    schedules = [each for each in schedules if each.problem is None]
    late = [each for each in schedules if now - due_at(each) > LATE_SECONDS * MICROSECONDS]
    if late:
        oldest = max(now - due_at(each) for each in late) / MICROSECONDS
        yield Check(
            "schedules",
            CheckStatus.WRONG,
            f"Late, by up to {span(oldest)}: {_names(late)}. Every worker and server fires "
            "schedules: start one, and look at the logs of those that run.",
        )
    failing = [each for each in schedules if _is_failing(each)]
    if failing:
        yield Check(
            "schedules",
            CheckStatus.WARNING,
            f"Paused because their tasks failed: {_names(failing)}. Resume them once the reason "
            "is gone.",
        )
    refused = [each for each in schedules if _last_outcome(each) is Outcome.REFUSED]
    if refused:
        yield Check(
            "schedules",
            CheckStatus.WARNING,
            f"The store refused the task of their last tick: {_names(refused)}. Of the first one: "
            f"{refused[0].standing.runs[-1].reason}",
        )


def _last_outcome(schedule: Schedule) -> Outcome | None:
    runs = schedule.standing.runs
    return runs[-1].outcome if runs else None


def _is_failing(schedule: Schedule) -> bool:
    """Return whether it was paused because of its tasks. Ticks that an operator's pause left out
    have no reason."""
    if schedule.standing.pause is None or _last_outcome(schedule) is not Outcome.PAUSED:
        return False
    return bool(schedule.standing.runs[-1].reason)


def _names(schedules: Sequence[Schedule]) -> str:
    named = ", ".join(each.schedule_id for each in schedules[:NAMES])
    more = len(schedules) - NAMES
    return f"{named} and {more:,} more" if more > 0 else named
