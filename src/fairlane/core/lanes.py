"""Lanes: which tasks a worker may take, and how many of them.

A lane is (queue, type, capabilities), fixed when a task is submitted. A claim reads only lanes it
may take, so it never picks up a task to put it back. Pause, rate, concurrency and circuit breaker
belong to the type and act on all its lanes at once; pause also to a queue and to everything.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Literal, Protocol

import msgspec

from fairlane.core import limits
from fairlane.core.breaker import Breaker, cools, opened_at
from fairlane.core.breaker import checked as checked_breaker
from fairlane.core.errors import InvalidLimit
from fairlane.core.model import Ask, Claimed
from fairlane.core.priority import MICROSECONDS
from fairlane.core.streams import Span, spans_of
from fairlane.core.text import NAME_RULE, is_name, shown

LaneKey = tuple[str, str, tuple[str, ...]]
"""(queue, type, sorted capabilities)"""


class Lane(msgspec.Struct, frozen=True):
    """A lane, and the small number under which engines store its tasks."""

    id: int
    queue: str
    type: str
    capabilities: tuple[str, ...]

    @property
    def key(self) -> LaneKey:
        """What the lane was made from."""
        return (self.queue, self.type, self.capabilities)


class Rules(msgspec.Struct, frozen=True):
    """What is set for a type, or for everything. Zero means unlimited."""

    paused: bool = False
    rate: float = 0.0
    concurrency: int = 0
    breaker: Breaker | None = None
    open_until: int | None = None
    """Set while the circuit is not closed: nothing is claimed before, one at a time after."""
    timeout: float = 0.0
    """For tasks that name none; zero if none is set."""

    @property
    def slots(self) -> int:
        """The most that may be held at once; zero means unlimited."""
        return self.concurrency if self.open_until is None else 1

    @property
    def opened_at(self) -> int | None:
        """When the circuit opened, if it is not closed."""
        if self.open_until is None or self.breaker is None:
            return None
        return opened_at(self.open_until, self.breaker)

    def cools(self, now: int) -> bool:
        """Return whether nothing is claimed, because the circuit opened not long ago."""
        if self.open_until is None:
            return False
        if self.breaker is None:
            return now < self.open_until
        return cools(self.open_until, self.breaker, now)

    @property
    def limited(self) -> bool:
        """Whether claims must be counted."""
        return self.rate > 0 or self.slots > 0


UNRULED = Rules()


class Controls(msgspec.Struct, frozen=True):
    """Everything that operators set at run time. `version` grows with every change."""

    version: int = 0
    everything: Rules = UNRULED
    paused_queues: frozenset[str] = frozenset()
    types: Mapping[str, Rules] = {}

    def timeouts(self) -> dict[str, float]:
        """Return the types that have a timeout."""
        return {type: rules.timeout for type, rules in self.types.items() if rules.timeout}


class Quota(msgspec.Struct, frozen=True):
    """A limited type with the lanes that a claim may take from it."""

    type: str
    rules: Rules
    lanes: tuple[int, ...]


class Opening(msgspec.Struct, frozen=True):
    """What one ask may take: lanes without limits, limited types, and the overall rate."""

    free: tuple[int, ...]
    quotas: tuple[Quota, ...]
    rate: float
    spans: tuple[Span, ...] = ()
    """The lanes in it, as spans that hold no other lane."""

    @property
    def lanes(self) -> tuple[int, ...]:
        """Every lane in it."""
        return self.free + tuple(lane for quota in self.quotas for lane in quota.lanes)


CLOSED = Opening((), (), 0.0)


def opening(lanes: Iterable[Lane], controls: Controls, ask: Ask) -> Opening:
    """Return the lanes that `ask` may take tasks from under `controls`."""
    if controls.everything.paused:
        return CLOSED
    lanes = list(lanes)
    free: list[int] = []
    limited: dict[str, list[int]] = {}
    for lane in lanes:
        rules = controls.types.get(lane.type, UNRULED)
        if is_paused(lane, controls) or not serves(ask, lane):
            continue
        if rules.limited:
            limited.setdefault(lane.type, []).append(lane.id)
        else:
            free.append(lane.id)
    quotas = tuple(Quota(type, controls.types[type], tuple(ids)) for type, ids in limited.items())
    found = Opening(tuple(free), quotas, controls.everything.rate)
    spans = spans_of(found.lanes, [lane.id for lane in lanes])
    return msgspec.structs.replace(found, spans=spans)


def is_paused(lane: Lane, controls: Controls) -> bool:
    """Return whether nothing may be claimed from a lane: it, its queue or everything is paused."""
    return (
        controls.everything.paused
        or lane.queue in controls.paused_queues
        or controls.types.get(lane.type, UNRULED).paused
    )


def slotted(lanes: Iterable[Lane], controls: Controls) -> frozenset[int]:
    """Return the lanes with limited slots: the end of one run lets another begin."""
    if not any(rules.slots for rules in controls.types.values()):
        return frozenset()
    return frozenset(lane.id for lane in lanes if controls.types.get(lane.type, UNRULED).slots)


class Needs(Protocol):
    """What a task asks of a worker: a `Task` or a `Lane`."""

    @property
    def queue(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def capabilities(self) -> tuple[str, ...]: ...


class Offers(Protocol):
    """What a worker serves. None means everything."""

    @property
    def queues(self) -> Collection[str] | None: ...
    @property
    def types(self) -> Collection[str] | None: ...
    @property
    def capabilities(self) -> frozenset[str]: ...


def serves(worker: Offers, task: Needs) -> bool:
    """Return whether a worker takes such tasks."""
    return (
        (worker.types is None or task.type in worker.types)
        and (worker.queues is None or task.queue in worker.queues)
        and worker.capabilities.issuperset(task.capabilities)
    )


class Bucket(msgspec.Struct, frozen=True):
    """A token bucket: `tokens` were left at `at` microseconds."""

    tokens: float
    at: int


def burst(rate: float) -> float:
    """Return the most that may start at one instant."""
    return max(1.0, rate)


def refilled(bucket: Bucket | None, rate: float, now: int) -> Bucket:
    """Return the bucket as it stands at `now`; a new one is full."""
    if bucket is None:
        return Bucket(burst(rate), now)
    # A clock that steps back must not take tokens away, nor give them twice. (`bring_back` lets the
    # refill go on.)
    gained = max(0, now - bucket.at) * rate / MICROSECONDS
    return Bucket(min(burst(rate), bucket.tokens + gained), max(now, bucket.at))


def allowance(rules: Rules, bucket: Bucket | None, held: int, now: int) -> int:
    """Return how many more tasks may be claimed under `rules`; `bucket` is already refilled."""
    if rules.cools(now):
        return 0
    most = limits.BATCH
    if rules.slots > 0:
        most = min(most, max(0, rules.slots - held))
    if rules.rate > 0 and bucket is not None:
        most = min(most, math.floor(bucket.tokens))
    return most


def opens_in(rules: Rules, bucket: Bucket | None, now: int) -> float | None:
    """Return the seconds until more may be claimed, None if time alone does not help."""
    waits = []
    if rules.open_until is not None and rules.cools(now):
        waits.append((rules.open_until - now) / MICROSECONDS)
    if rules.rate > 0 and bucket is not None and bucket.tokens < 1:
        waits.append((1.0 - bucket.tokens) / rules.rate)
    return max(waits, default=None)


def checked_scope(name: str | None) -> str | None:
    """Return the name of a queue or type that something is set for, or None for everything."""
    if name is None or is_name(name):
        return name
    raise InvalidLimit(f"The name of a queue or type has {NAME_RULE}. Got {shown(name)}.")


def checked_rate(rate: object) -> float:
    """Return the rate. Raises InvalidLimit if it cannot be set."""
    if (
        isinstance(rate, int | float)
        and not isinstance(rate, bool)
        and 0 <= rate <= limits.RATE_PER_SECOND
    ):
        return float(rate)
    raise InvalidLimit(
        "A rate limit is a number of tasks a second from 0 (unlimited) to "
        f"{limits.RATE_PER_SECOND:,.0f}. Got {shown(rate)}."
    )


def checked_concurrency(concurrency: object) -> int:
    """Return the limit. Raises InvalidLimit if it cannot be set."""
    if (
        isinstance(concurrency, int)
        and not isinstance(concurrency, bool)
        and 0 <= concurrency <= limits.CONCURRENCY
    ):
        return concurrency
    raise InvalidLimit(
        "A concurrency limit is a whole number of tasks from 0 (unlimited) to "
        f"{limits.CONCURRENCY:,}. Got {shown(concurrency)}."
    )


def retimed(tasks: Iterable[Claimed], timeouts: Mapping[str, float]) -> dict[str, Claimed]:
    """Return those of these claimed tasks, by id, that get the timeout of their type.

    The task names none, and no run of it has failed: a retry keeps the timeout of the run before,
    which may have grown. (A repeated request gets the same tasks as before: engines do not ask.)
    """
    found = {}
    for task in tasks:
        timeout = timeouts.get(task.type)
        if timeout and timeout != task.timeout and not (task.spec.timed or task.retry_count):
            found[task.task_id] = msgspec.structs.replace(task, timeout=timeout)
    return found


def checked_timeout(timeout: object) -> float:
    """Return the timeout of a type. Raises InvalidLimit if it cannot be set."""
    if (
        isinstance(timeout, int | float)
        and not isinstance(timeout, bool)
        and 0 <= timeout <= limits.TIMEOUT_SECONDS
    ):
        return float(timeout)
    raise InvalidLimit(
        "The timeout of a type is a number of seconds from 0 (none) to "
        f"{limits.TIMEOUT_SECONDS:,.0f}. Got {shown(timeout)}."
    )


class Limits(msgspec.Struct, frozen=True):
    """What is to be set for a type, or for everything (None); None leaves a limit as it is."""

    type: str | None
    rate: float | None
    concurrency: int | None
    breaker: Breaker | Literal[False] | None
    timeout: float | None = None


def checked_limits(
    type: str | None,
    rate: float | None,
    concurrency: int | None,
    breaker: Breaker | Literal[False] | None,
    timeout: float | None = None,
) -> Limits:
    """Return the limits. Raises InvalidLimit if they cannot be set."""
    if breaker is not None and type is None:
        raise InvalidLimit("A circuit breaker belongs to a type: name one.")
    if timeout is not None and type is None:
        raise InvalidLimit("A timeout belongs to a type: name one.")
    return Limits(
        checked_scope(type),
        None if rate is None else checked_rate(rate),
        None if concurrency is None else checked_concurrency(concurrency),
        breaker if breaker is None or breaker is False else checked_breaker(breaker),
        None if timeout is None else checked_timeout(timeout),
    )
