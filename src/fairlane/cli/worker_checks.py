"""What `fairlane doctor` says about workers, and about tasks that none of them takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from fairlane.cli.checks import Check, CheckStatus
from fairlane.cli.render import span
from fairlane.core.model import WorkerStatus
from fairlane.core.stats import UNSERVED, Stats
from fairlane.core.unserved import UnservedLane
from fairlane.core.why import NOBODY

_HINT: Final = (
    "Give what these handlers call a time limit, or the tasks "
    'isolation="process", and restart the workers.'
)


def check_workers(stats: Stats, alive: int, queued: int) -> Iterator[Check]:
    """Show whether there are workers that take tasks, and how many do not."""
    if not alive:
        found = CheckStatus.WRONG if queued else CheckStatus.WARNING
        yield Check("workers", found, NOBODY)
    elif not stats.workers.active and queued:
        yield Check(
            "workers", CheckStatus.WRONG, "No worker takes tasks: all drain or are unhealthy."
        )
    else:
        yield Check(
            "workers",
            CheckStatus.OK,
            f"{alive:,} alive, {stats.workers.used_capacity:,} of "
            f"{stats.workers.total_capacity:,} slots in use.",
        )
    for status in (WorkerStatus.UNHEALTHY, WorkerStatus.DEAD):
        number: int = getattr(stats.workers, status.value)
        if number:
            yield Check(
                "workers", CheckStatus.WARNING, f"{number:,} {status}: see `fairlane workers`."
            )


def check_held_back(holders: Mapping[str, int]) -> Iterator[Check]:
    """Show the types that workers hold back."""
    if holders:
        shown = [
            f"{type} (by {number:,} worker{'' if number == 1 else 's'})"
            for type, number in sorted(holders.items())[:UNSERVED]
        ]
        more = len(holders) - len(shown)
        yield Check(
            "workers",
            CheckStatus.WARNING,
            f"Held back, because their handlers hang: {', '.join(shown)}"
            f"{f' and {more:,} more' if more else ''}. {_HINT}",
        )


def check_unserved(lanes: Sequence[UnservedLane]) -> Iterator[Check]:
    """Show tasks that wait although no worker takes them."""
    for lane in lanes[:UNSERVED]:
        needs = [f"queue {lane.queue}", f"type {lane.type}"]
        needs += [f"capability {name}" for name in lane.required_capabilities]
        many = "1 task waits" if lane.count == 1 else f"{lane.count:,} tasks wait"
        what = ", ".join(needs)
        if lane.held_back:
            why = f"every worker that serves {what} holds them back: their handler hangs."
        else:
            why = f"no worker serves {what}: start one that does, or cancel them."
        message = f"{many}, the oldest for {span(lane.oldest_age_seconds)}, and {why}"
        yield Check("unserved", CheckStatus.WRONG, message)
    more = lanes[UNSERVED:]
    if more:
        count = sum(lane.count for lane in more)
        yield Check("unserved", CheckStatus.WRONG, f"{count:,} more, in {len(more):,} lanes.")
