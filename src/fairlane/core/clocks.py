"""Clocks: the store's clock can be set, so nothing ends because of that clock alone.

The process that does the maintenance compares the store's clock with its own monotonic clock, which
nobody can set. While both run alike, the store's clock is trusted. After a step, leases and time
limits count from the moment at which the new time was first seen.

A step forward makes runs and workers look overdue that are not: see `Watch`. A step back leaves
times in the store that lie ahead of now: see `ahead`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from fairlane.core.documents import Document, Documents, rewrites, write
from fairlane.core.flow import Flow
from fairlane.core.model import Worker, microseconds_of
from fairlane.core.priority import MICROSECONDS

STEP = MICROSECONDS
"""The smallest step that counts, in microseconds. A time that lies further ahead of now was written
while the clock was ahead."""
HANDOVER_SECONDS = 20.0
"""Two witnesses whose own clocks cannot be compared trust each other over a gap of this length: the
time in which one process takes over the maintenance from another."""
NOTED_SECONDS = 5.0
"""The interval at which a sighting is stored while the clock runs evenly."""
SPARED_SECONDS = 3600.0
"""For how long nothing is deleted after a step forward, which makes everything look old."""

_KIND = "clock"
_ID = "witness"


class Sighting(msgspec.Struct, frozen=True):
    """The store's clock (`at`), and what a witness's own clock showed at that moment.

    `boot` says which clock that was: clocks of the same boot can be compared. `slack` is how
    uncertain the moment is, in seconds. The store's clock has run evenly since `since`; `latest` is
    the latest time it has ever shown; nothing is deleted before `spare_until`.
    """

    at: int
    boot: str
    seconds: float
    slack: float
    since: int = 0
    latest: int = 0
    spare_until: int = 0


class Watch(NamedTuple):
    """What the witness says of the store's clock now.

    `since`: since when it has run evenly, as far as anybody knows. `fresh`: since now, because of a
    step (`step`, in seconds), or because nobody has watched it (0).
    """

    now: int
    since: int
    fresh: bool
    step: float
    behind: bool
    """The clock has shown later times than now: there may be such times in the store."""
    spares: bool
    """Nothing should be deleted for now."""

    def confirms(self, worker: Worker) -> bool:
        """Return whether a worker has given no sign of life for its lease, on both clocks."""
        seen = max(microseconds_of(worker.last_heartbeat), self.since)
        return worker.lost and self.now - seen >= worker.lease * MICROSECONDS


@rewrites
def watch_clock(self: Documents, boot: str, clock: Callable[[], float]) -> Flow[Watch]:
    before = clock()
    now, (stored,) = yield from self.read_documents(_KIND, [_ID])
    after = clock()
    last = None if stored is None else _decoder.decode(stored.value)
    seen, step = judge(last, Sighting(now, boot, (before + after) / 2, (after - before) / 2))
    if last is None or _is_news(last, seen):
        version = 0 if stored is None else stored.version
        yield from write(self, _KIND, [Document(_ID, _encode(seen), now, version=version)])
    behind = seen.latest - now > STEP
    return Watch(now, seen.since, seen.since == now, step, behind, now < seen.spare_until)


_decoder = msgspec.json.Decoder(Sighting)
_encode = msgspec.json.encode


def _is_news(last: Sighting, seen: Sighting) -> bool:
    passed = (seen.at - last.at) / MICROSECONDS
    changed = (last.since, last.boot) != (seen.since, seen.boot)
    return changed or not 0 <= passed < NOTED_SECONDS


def judge(last: Sighting | None, seen: Sighting) -> tuple[Sighting, float]:
    """Compare a sighting with the last one. Return it complete, and the step in seconds, if any."""
    if last is None:
        return msgspec.structs.replace(seen, since=seen.at, latest=seen.at), 0.0
    passed = (seen.at - last.at) / MICROSECONDS
    least = STEP / MICROSECONDS
    step = 0.0
    if seen.boot == last.boot:
        difference = passed - (seen.seconds - last.seconds)
        if abs(difference) > least + seen.slack + last.slack:
            step = difference
        even = not step
    else:
        even = -least <= passed <= HANDOVER_SECONDS
    spare_until = last.spare_until
    if step:
        spare_until = seen.at + int(SPARED_SECONDS * MICROSECONDS) if step > 0 else 0
    judged = msgspec.structs.replace(
        seen,
        since=last.since if even else seen.at,
        latest=max(last.latest, seen.at),
        spare_until=spare_until,
    )
    return judged, step


def ahead(time: int, now: int) -> int:
    """Return by how much a time of ours lies ahead of now, 0 if by no more than is reasonable.

    Concurrent processes read the clock at slightly different moments.
    """
    return time - now if time - now > STEP else 0


class Times(NamedTuple):
    """The times of a task that waits for one of them."""

    due_at: int
    updated_at: int
    ready_at: int
    run_at: int


def brought_back(times: Times, *, dated: bool, now: int) -> Times | None:
    """Return the times that a waiting task has after the clock was set back; None if it keeps them.

    A task whose last change lies ahead of now waits its full delay from now on. `dated`: the
    submitter named the time that it waits for, which stays as it is.
    """
    by = ahead(times.updated_at, now)
    if dated or not by:
        return None
    due_at, _, ready_at, run_at = times
    return Times(
        due_at - by,
        now,
        ready_at - by if ready_at > now else ready_at,
        run_at - by if run_at > now else run_at,
    )
