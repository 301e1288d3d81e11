"""What is paused and limited, and what is to be."""

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
from fairlane.wire.values import BreakerTime, Failures, Most, Rate

N = TypeVar("N", int, float)


class CircuitBreaker(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """After so many failures within a time no task of the type starts for another time."""

    failures: Failures
    within_seconds: BreakerTime
    cooldown_seconds: BreakerTime


class RulesView(msgspec.Struct, frozen=True, kw_only=True):
    """What is set for a type. Zero means unlimited. `open_until` is set while its circuit is not
    closed."""

    paused: bool
    rate_limit: float
    concurrency: int
    circuit_breaker: CircuitBreaker | None
    open_until: Moment | None


class TypeRules(RulesView, frozen=True, kw_only=True):
    """What is set for a type, and which type that is."""

    type: str


class TypeView(TypeRules, frozen=True, kw_only=True):
    """A type. `held`: the slots that are taken, which a concurrency limit goes by."""

    held: int
    by_status: Mapping[State, int]


class TypeList(msgspec.Struct, frozen=True):
    """All types that have had a task or that something is set for."""

    types: tuple[TypeView, ...]


class QueueState(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a queue is paused."""

    queue: str
    paused: bool


class QueueView(QueueState, frozen=True, kw_only=True):
    """A queue. `depth`: tasks that are queued there."""

    depth: int
    oldest_age_seconds: float
    by_status: Mapping[State, int]


class QueueList(msgspec.Struct, frozen=True):
    """All queues that have had a task or are paused."""

    queues: tuple[QueueView, ...]


class ControlsView(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that operators have set."""

    paused: bool
    rate_limit: float
    paused_queues: tuple[str, ...]
    types: Mapping[str, RulesView]


class TypePatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be set for a type; null takes a limit away, what is left out stays."""

    paused: bool | msgspec.UnsetType = msgspec.UNSET
    rate_limit: Rate | msgspec.UnsetType | None = msgspec.UNSET
    concurrency: Most | msgspec.UnsetType | None = msgspec.UNSET
    circuit_breaker: CircuitBreaker | msgspec.UnsetType | None = msgspec.UNSET

    @property
    def rate(self) -> float | None:
        """The rate to be set, None to leave it."""
        return _limit(self.rate_limit)

    @property
    def most(self) -> int | None:
        """The concurrency to be set, None to leave it."""
        return _limit(self.concurrency)

    @property
    def breaker(self) -> Breaker | Literal[False] | None:
        """The breaker to be set, False to take it away, None to leave it."""
        match self.circuit_breaker:
            case CircuitBreaker(failures, within, cooldown):
                return Breaker(failures, within, cooldown)
            case None:
                return False
            case _:
                return None


class ControlPatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be set for everything together; null takes the limit away, what is left out
    stays."""

    paused: bool | msgspec.UnsetType = msgspec.UNSET
    rate_limit: Rate | msgspec.UnsetType | None = msgspec.UNSET

    @property
    def rate(self) -> float | None:
        """The rate to be set, None to leave it."""
        return _limit(self.rate_limit)


def controls_of(controls: Controls) -> ControlsView:
    """Everything that is set."""
    return ControlsView(
        paused=controls.everything.paused,
        rate_limit=controls.everything.rate,
        paused_queues=tuple(sorted(controls.paused_queues)),
        types={type: RulesView(**_rules(each)) for type, each in sorted(controls.types.items())},
    )


def type_rules(type: str, rules: Rules) -> TypeRules:
    """What is set for a type."""
    return TypeRules(type=type, **_rules(rules))


def type_of(found: TypeFacts) -> TypeView:
    """A type."""
    return TypeView(
        type=found.type, held=found.held, by_status=found.by_status, **_rules(found.rules)
    )


def queue_of(found: QueueFacts) -> QueueView:
    """A queue."""
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
    circuit_breaker: CircuitBreaker | None
    open_until: Moment | None


def _rules(rules: Rules) -> _Rules:
    breaker = rules.breaker
    return _Rules(
        paused=rules.paused,
        rate_limit=rules.rate,
        concurrency=rules.concurrency,
        circuit_breaker=None
        if breaker is None
        else CircuitBreaker(breaker.failures, breaker.within, breaker.cooldown),
        open_until=iso_or_none(moment_or_none(rules.open_until)),
    )


def _limit(given: N | msgspec.UnsetType | None) -> N | None:
    """The limit to be set: zero for none at all."""
    if isinstance(given, msgspec.UnsetType):
        return None
    return given or 0
