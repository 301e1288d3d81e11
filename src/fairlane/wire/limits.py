"""Pauses and limits of queues and types, and changes to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypedDict, TypeVar

import msgspec

from fairlane.core.breakdown import QueueFacts, TypeFacts
from fairlane.core.breaker import Breaker
from fairlane.core.lanes import Controls, Rules
from fairlane.core.model import moment_or_none
from fairlane.core.states import State
from fairlane.wire.times import Moment, iso_or_none
from fairlane.wire.values import BreakerTime, Failures, Most, Rate, TypeTimeout

N = TypeVar("N", int, float)


class CircuitBreaker(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """After `failures` within `within_seconds`, no task of the type starts for
    `cooldown_seconds`."""

    failures: Failures
    within_seconds: BreakerTime
    cooldown_seconds: BreakerTime


class RulesView(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a type. Zero means unlimited. `timeout_seconds` counts for tasks that name
    none; zero: none is set. `open_until` is set while the circuit is not closed."""

    paused: bool
    rate_limit: float
    concurrency: int
    timeout_seconds: float
    circuit_breaker: CircuitBreaker | None
    open_until: Moment | None


class TypeRules(RulesView, frozen=True, kw_only=True):
    """A type and its settings."""

    type: str


class TypeView(TypeRules, frozen=True, kw_only=True):
    """A type. `held`: the slots in use, which the concurrency limit counts."""

    held: int
    by_status: Mapping[State, int]


class TypeList(msgspec.Struct, frozen=True):
    """All types that have had a task, have settings, or were published by a worker."""

    types: tuple[TypeView, ...]


class QueueState(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a queue is paused."""

    queue: str
    paused: bool


class QueueView(QueueState, frozen=True, kw_only=True):
    """A queue. `depth`: its queued tasks."""

    depth: int
    oldest_age_seconds: float
    by_status: Mapping[State, int]


class QueueList(msgspec.Struct, frozen=True):
    """All queues that have had a task or are paused."""

    queues: tuple[QueueView, ...]


class ControlsView(msgspec.Struct, frozen=True, kw_only=True):
    """All pauses and limits."""

    paused: bool
    rate_limit: float
    paused_queues: tuple[str, ...]
    types: Mapping[str, RulesView]


class TypePatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes to the settings of a type. Null removes a limit; what is left out stays."""

    paused: bool | msgspec.UnsetType = msgspec.UNSET
    rate_limit: Rate | msgspec.UnsetType | None = msgspec.UNSET
    concurrency: Most | msgspec.UnsetType | None = msgspec.UNSET
    timeout_seconds: TypeTimeout | msgspec.UnsetType | None = msgspec.UNSET
    circuit_breaker: CircuitBreaker | msgspec.UnsetType | None = msgspec.UNSET

    @property
    def rate(self) -> float | None:
        """The new rate; None: unchanged."""
        return _limit(self.rate_limit)

    @property
    def most(self) -> int | None:
        """The new concurrency; None: unchanged."""
        return _limit(self.concurrency)

    @property
    def timeout(self) -> float | None:
        """The new timeout; None: unchanged."""
        return _limit(self.timeout_seconds)

    @property
    def breaker(self) -> Breaker | Literal[False] | None:
        """The new circuit breaker; False: none; None: unchanged."""
        match self.circuit_breaker:
            case CircuitBreaker(failures, within, cooldown):
                return Breaker(failures, within, cooldown)
            case None:
                return False
            case _:
                return None


class ControlPatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes for all types together. Null removes the limit; what is left out stays."""

    paused: bool | msgspec.UnsetType = msgspec.UNSET
    rate_limit: Rate | msgspec.UnsetType | None = msgspec.UNSET

    @property
    def rate(self) -> float | None:
        """The new rate; None: unchanged."""
        return _limit(self.rate_limit)


def controls_of(controls: Controls) -> ControlsView:
    """Return all pauses and limits as JSON shows them."""
    return ControlsView(
        paused=controls.everything.paused,
        rate_limit=controls.everything.rate,
        paused_queues=tuple(sorted(controls.paused_queues)),
        types={type: RulesView(**_rules(each)) for type, each in sorted(controls.types.items())},
    )


def type_rules(type: str, rules: Rules) -> TypeRules:
    """Return the settings of a type as JSON shows them."""
    return TypeRules(type=type, **_rules(rules))


def type_of(found: TypeFacts) -> TypeView:
    """Return a type as JSON shows it."""
    return TypeView(
        type=found.type, held=found.held, by_status=found.by_status, **_rules(found.rules)
    )


def queue_of(found: QueueFacts) -> QueueView:
    """Return a queue as JSON shows it."""
    return QueueView(
        queue=found.queue,
        paused=found.paused,
        depth=found.by_status[State.QUEUED],
        oldest_age_seconds=found.oldest_age_seconds,
        by_status=found.by_status,
    )


class _Rules(TypedDict):
    paused: bool
    rate_limit: float
    concurrency: int
    timeout_seconds: float
    circuit_breaker: CircuitBreaker | None
    open_until: Moment | None


def _rules(rules: Rules) -> _Rules:
    breaker = rules.breaker
    return _Rules(
        paused=rules.paused,
        rate_limit=rules.rate,
        concurrency=rules.concurrency,
        timeout_seconds=rules.timeout,
        circuit_breaker=None
        if breaker is None
        else CircuitBreaker(breaker.failures, breaker.within, breaker.cooldown),
        open_until=iso_or_none(moment_or_none(rules.open_until)),
    )


def _limit(given: N | msgspec.UnsetType | None) -> N | None:
    """Return the new limit: zero for none, None for unchanged."""
    if isinstance(given, msgspec.UnsetType):
        return None
    return given or 0
