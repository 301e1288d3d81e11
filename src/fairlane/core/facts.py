"""What a store tells of itself at one glance. What follows from it is said once for all engines:
see `stats`, `estimates` and `why`.

Nothing here costs more with more tasks stored: counters, the ends of the streams that are not
empty, limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

from fairlane.core import limits
from fairlane.core.documents import Document, Documents, Order, rewrites, write
from fairlane.core.flow import Flow, Op, reads
from fairlane.core.ids import new_id
from fairlane.core.lanes import Bucket, Controls, Lane
from fairlane.core.model import Worker
from fairlane.core.priority import MICROSECONDS, Band, band_of
from fairlane.core.roles import take_role, was_taken
from fairlane.core.states import State
from fairlane.core.tally import LOST_WORKERS, STALE_RESULTS, Tally


class Stream(msgspec.Struct, frozen=True):
    """The queued tasks of one lane and level: how many, and when the ends became ready."""

    lane: int
    level: int
    depth: int
    oldest: int
    newest: int


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """Counters as they stood at a time (microseconds), taken every few seconds by the maintenance.

    What happened within the last minute is the difference between now and the sample of a minute
    ago. All but `depths` (queued tasks by band, in the order of `Band`) and `executing` only grow.
    """

    at: int
    submitted: int = 0
    started: int = 0
    completed: int = 0
    failed: int = 0
    """Runs that failed, whether the task is retried or not; timeouts and losses included."""
    timeouts: int = 0
    lost_workers: int = 0
    stale_results: int = 0
    seconds: float = 0.0
    """How long all completed runs took together."""
    depths: tuple[int, ...] = (0, 0, 0, 0)
    executing: int = 0
    began: int = 0
    """In the first sample of a store: since when it counts, about. In all others 0."""


class Facts(msgspec.Struct, frozen=True):
    """A store at a glance.

    `held` counts the slots that are taken, by lane: tasks in workers' hands, and runs whose task
    has moved on. `samples` are those nearest to a minute and to an hour ago.
    """

    now: int
    lanes: Mapping[int, Lane]
    tallies: list[Tally]
    streams: list[Stream]
    controls: Controls
    buckets: Mapping[str, Bucket]
    held: Mapping[int, int]
    workers: list[Worker]
    samples: list[Sample]


def sample_of(tallies: Iterable[Tally], now: int) -> Sample:
    """Return the counters as a sample."""
    count = dict.fromkeys(Sample.__struct_fields__, 0)
    seconds = 0.0
    depths = dict.fromkeys(Band, 0)
    for key, times, spent in tallies:
        source, target = key.source, key.target
        if target == _QUEUED:
            depths[band_of(key.level)] += times
        if source == _QUEUED:
            depths[band_of(key.level)] -= times
        if target == _EXECUTING:
            count["started"] += times
            count["executing"] += times
        if source == _EXECUTING:
            count["executing"] -= times
        if source == 0 and target and not key.label:
            count["submitted"] += times
        if source == _EXECUTING and target == _COMPLETED:
            count["completed"] += times
            seconds += spent
        elif source == _EXECUTING and key.label in _FAILURES:
            count["failed"] += times
        if source == _EXECUTING and key.label == "timeout":
            count["timeouts"] += times
        if key.label == STALE_RESULTS:
            count["stale_results"] += times
        if key.label == LOST_WORKERS:
            count["lost_workers"] += times
    return Sample(
        at=now,
        submitted=count["submitted"],
        started=count["started"],
        completed=count["completed"],
        failed=count["failed"],
        timeouts=count["timeouts"],
        lost_workers=count["lost_workers"],
        stale_results=count["stale_results"],
        seconds=seconds,
        depths=tuple(depths.values()),
        executing=count["executing"],
    )


_QUEUED, _EXECUTING, _COMPLETED = (
    State.QUEUED.code,
    State.EXECUTING.code,
    State.COMPLETED.code,
)
_FAILURES = frozenset(
    {"error", "timeout", "worker_lost", "not_started", "max_retries_exceeded", "not_retriable"}
)


# Operations on samples, see `store`.

SAMPLE = "sample"
"""The kind of the documents that hold samples. Also the role that a process takes to add one."""


class Counted(Documents, Protocol):
    """A store that has documents, and tells facts."""

    def facts(self) -> Op[Facts]: ...


@rewrites
def sample(self: Counted) -> Flow[bool]:
    is_first = not (yield from was_taken(self, SAMPLE))
    if not (yield from take_role(self, SAMPLE, new_id(), limits.SAMPLE_SECONDS)):
        return False
    facts = yield from self.facts().flow()
    taken = sample_of(facts.tallies, facts.now)
    if is_first and not facts.samples:
        # A store does not know its age. Nothing older than its oldest waiting task matters here.
        oldest = min((stream.oldest for stream in facts.streams), default=facts.now)
        taken = msgspec.structs.replace(taken, began=min(oldest, facts.now))
    expires_at = taken.at + int(limits.SAMPLES_SECONDS * MICROSECONDS)
    yield from write(
        self, SAMPLE, [Document(str(taken.at), msgspec.json.encode(taken), taken.at, expires_at)]
    )
    return True


@reads
def samples(self: Documents, since: int, limit: int) -> Flow[list[Sample]]:
    if limit <= 0:
        return []
    _, found = yield from self.list_documents(SAMPLE, Order.OLDEST, limit, (since, ""))
    return [sample_in(each.value) for each in found]


def sample_in(value: bytes) -> Sample:
    """Return a sample out of its document."""
    # Those that PostgreSQL kept before they were documents are msgpack.
    return (_json if value.startswith(b"[") else _msgpack).decode(value)


_json = msgspec.json.Decoder(Sample)
_msgpack = msgspec.msgpack.Decoder(Sample)
