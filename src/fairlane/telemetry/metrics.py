"""The facts of a store as Prometheus metrics: the same facts give the same metrics on every server.

There are two complete sets of names: plain ones, and those that begin with `taskqueue_` (where the
band `medium` is called `normal`). Metrics that neither set has begin with `fairlane_`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final

from prometheus_client import generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from fairlane.core import machine
from fairlane.core.breakdown import demand_of, queues_of
from fairlane.core.facts import Facts, Stream
from fairlane.core.lanes import Controls
from fairlane.core.machine import (
    EXPIRED,
    NOT_RETRIABLE,
    NOT_STARTED,
    RETRIES_EXHAUSTED,
    TIMED_OUT,
    WORKER_LOST,
)
from fairlane.core.priority import Band, band_of
from fairlane.core.schedules import Outcome
from fairlane.core.states import State
from fairlane.core.stats import Stats, age_percentile, at_risk, stats_of
from fairlane.core.tick_counts import LAG_BOUNDS, TickCounts
from fairlane.core.unserved import unserved
from fairlane.core.workflow_watch import WorkflowEnds
from fairlane.core.workflows import WorkflowState
from fairlane.telemetry.counts import NO_STATE, Counts, Durations, labels_of

PERCENTILES: Final = {"p50": 0.50, "p95": 0.95, "p99": 0.99}
RETRY_REASONS: Final = ("error", TIMED_OUT, WORKER_LOST, NOT_STARTED)
DEAD_LETTER_REASONS: Final = (RETRIES_EXHAUSTED, TIMED_OUT, WORKER_LOST, NOT_STARTED)
FAILURE_REASONS: Final = (*DEAD_LETTER_REASONS, NOT_RETRIABLE, EXPIRED)
TRANSITIONS: Final = [
    (source, target)
    for row in machine.TRANSITIONS.values()
    for source in (sorted(row.sources) or (NO_STATE,))
    for target in sorted(row.targets)
]
"""Every pair of states that a move can lead from and to."""


CONTENT_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"

Value = tuple[Sequence[str], float]
"""Label values and a number."""


def exposition(facts: Facts, ticks: TickCounts, ends: WorkflowEnds, version: str) -> bytes:
    """Return the metrics of a store in Prometheus' text format."""
    return generate_latest(_Collected(families(facts, ticks, ends, version)))


class _Collected(Collector):
    """Metrics as a collector: counters live in the store, not in this process."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def families(facts: Facts, ticks: TickCounts, ends: WorkflowEnds, version: str) -> list[Metric]:
    """Return all metrics. `version` is that of the program."""
    stats, counts = stats_of(facts), Counts(facts)
    return [
        *_queues(facts, stats),
        *_lifecycle(stats, counts),
        *_workers(stats, counts),
        *_taskqueue(stats, counts),
        *_controls(facts),
        *_schedules(ticks),
        _workflows(ends),
        _gauge("fairlane_build_info", "What runs.", ["version"], [((version,), 1)]),
    ]


def _queues(facts: Facts, stats: Stats) -> Iterator[Metric]:
    bands = stats.queues.items()
    yield _gauge(
        "queue_depth",
        "Tasks that wait to run now, by the priority they were submitted with.",
        ["priority"],
        [((band,), found.depth) for band, found in bands],
    )
    yield _gauge(
        "queue_age_seconds",
        "How long waiting tasks have been ready. An estimate from the ends of each queue.",
        ["priority", "percentile"],
        [
            ((band, name), age_percentile(_of(band, facts), facts.now, share))
            for band in Band
            for name, share in PERCENTILES.items()
        ],
    )
    yield _gauge(
        "fairlane_queue_age_seconds",
        "The same for all priorities together.",
        ["percentile"],
        [((n,), age_percentile(facts.streams, facts.now, s)) for n, s in PERCENTILES.items()],
    )
    yield _gauge(
        "fairlane_queue_oldest_age_seconds",
        "How long the task that waits longest has been ready.",
        ["priority"],
        [((band,), found.oldest_age_seconds) for band, found in bands],
    )
    yield _gauge(
        "starvation_risk_count",
        "Tasks that have been ready for more than ten minutes. An estimate.",
        ["priority"],
        [((band,), at_risk(_of(band, facts), facts.now)) for band in Band],
    )
    yield _gauge(
        "fairlane_unserved_tasks",
        "Queued tasks that no living worker takes, after a minute: none serves their queue, type "
        "and capabilities, or those that do hold back the type.",
        [],
        [((), sum(lane.count for lane in unserved(facts)))],
    )
    yield _gauge(
        "fairlane_capability_tasks",
        "Tasks that need a capability and wait to run now, or run.",
        ["capability", "status"],
        _waiting_and_running(
            {name: (each.queued, each.executing) for name, each in demand_of(facts).items()}
        ),
    )
    yield _gauge(
        "fairlane_queue_tasks",
        "Tasks of a queue that wait to run now, or run.",
        ["queue", "status"],
        _waiting_and_running(
            {
                each.queue: (each.by_status[State.QUEUED], each.by_status[State.EXECUTING])
                for each in queues_of(facts)
            }
        ),
    )


def _waiting_and_running(counted: Mapping[str, tuple[int, int]]) -> Iterable[Value]:
    """Return the numbers of queued and executing tasks by name."""
    labels = labels_of({name: sum(numbers) for name, numbers in counted.items()})
    sums: Counter[tuple[str, str]] = Counter()
    for name, (queued, executing) in counted.items():
        sums[labels[name], State.QUEUED] += queued
        sums[labels[name], State.EXECUTING] += executing
    return sums.items()


def _of(band: Band, facts: Facts) -> list[Stream]:
    return [stream for stream in facts.streams if band_of(stream.level) is band]


def _lifecycle(stats: Stats, counts: Counts) -> Iterator[Metric]:
    yield _counter(
        "tasks_promoted_total",
        "Claims of tasks that counted as a higher priority because of their age.",
        ["from", "to"],
        [(pair, counts.promoted[pair]) for pair in combinations(Band, 2)],
    )
    yield _histogram(
        "task_claim_latency_seconds",
        "How long tasks had been ready when they were claimed.",
        ["priority"],
        {(band,): found for band, found in counts.waits.items()},
    )
    yield _histogram(
        "task_duration_seconds",
        "How long runs took, by the status that they left their task in.",
        ["priority", "status"],
        {(band, state): found for (band, state), found in sorted(counts.by_band.items())},
    )
    retries = {(band, reason): 0 for band in Band for reason in RETRY_REASONS} | counts.retries
    yield _counter(
        "task_retries_total",
        "Runs that are followed by another one.",
        ["priority", "reason"],
        retries.items(),
    )
    yield _gauge(
        "task_state_total",
        "Tasks that there are.",
        ["status"],
        [((state,), count) for state, count in stats.by_status.items()],
    )
    failed = dict.fromkeys(FAILURE_REASONS, 0) | counts.failed
    yield _counter(
        "tasks_failed_total",
        "Tasks that ended without success, dead letters included.",
        ["reason"],
        [((reason,), times) for reason, times in failed.items()],
    )
    dead = dict.fromkeys(DEAD_LETTER_REASONS, 0) | counts.dead_letters
    yield _counter(
        "tasks_dlq_total",
        "Tasks that became dead letters.",
        ["reason"],
        [((reason,), times) for reason, times in dead.items()],
    )
    transitions = dict.fromkeys(TRANSITIONS, 0) | counts.transitions
    yield _counter(
        "task_state_transitions_total",
        "How often tasks went from one status to another; from `none` when they were submitted.",
        ["from", "to"],
        transitions.items(),
    )
    yield _counter(
        "fairlane_task_timeouts_total",
        "Runs that took longer than their time limit.",
        [],
        _one(counts.timeouts),
    )
    yield _counter(
        "fairlane_stale_results_total",
        "Results that were refused: the task was no longer that worker's.",
        [],
        _one(counts.stale_results),
    )


def _workers(stats: Stats, counts: Counts) -> Iterator[Metric]:
    workers = stats.workers
    yield _gauge(
        "workers_total",
        "Workers that there are.",
        ["status"],
        [
            (("active",), workers.active),
            (("draining",), workers.draining),
            (("unhealthy",), workers.unhealthy),
            (("dead",), workers.dead),
        ],
    )
    # A worker may hold a few more tasks than it can run at once.
    used = min(1.0, workers.used_capacity / workers.total_capacity) if workers.total_capacity else 0
    yield _gauge(
        "worker_capacity_used_ratio",
        "The part of all living workers' slots that is taken.",
        [],
        _one(used),
    )
    yield _counter(
        "worker_heartbeat_failures_total",
        "Workers that were declared dead because they fell silent.",
        [],
        _one(counts.lost_workers),
    )


def _taskqueue(stats: Stats, counts: Counts) -> Iterator[Metric]:
    yield _counter(
        "taskqueue_tasks_submitted_total",
        "Tasks that were submitted.",
        ["type", "priority"],
        [((type, _NORMAL[band]), n) for (type, band), n in sorted(counts.submitted.items())],
    )
    yield _counter(
        "taskqueue_tasks_completed_total",
        "Tasks that ended, however they did.",
        ["type", "status"],
        sorted(counts.ended.items()),
    )
    yield _histogram(
        "taskqueue_task_duration_seconds",
        "How long runs took, however they ended.",
        ["type"],
        {(type,): found for type, found in sorted(counts.by_type.items())},
    )
    yield _gauge(
        "taskqueue_queue_depth",
        "Tasks that wait to run now.",
        ["priority"],
        [((_NORMAL[band],), found.depth) for band, found in stats.queues.items()],
    )
    yield _gauge(
        "taskqueue_active_workers", "Workers that take tasks.", [], _one(stats.workers.active)
    )
    yield _gauge("taskqueue_dlq_size", "Dead letters that there are.", [], _one(stats.dlq_size))


_NORMAL: Final = {band: "normal" if band is Band.MEDIUM else band.value for band in Band}


def _controls(facts: Facts) -> Iterator[Metric]:
    rules = sorted(facts.controls.types.items())
    yield _gauge(
        "fairlane_circuit_breaker_open",
        "1 while a type is left alone because it kept failing, or is tried again one by one.",
        ["type"],
        [
            ((type,), rule.open_until is not None)
            for type, rule in rules
            if rule.breaker is not None or rule.open_until is not None
        ],
    )
    yield _gauge(
        "fairlane_paused",
        "1 for what an operator has paused: everything, or the queue or type of that name.",
        ["scope", "name"],
        _paused(facts.controls),
    )


def _paused(controls: Controls) -> Iterator[Value]:
    yield ("everything", ""), controls.everything.paused
    for queue in sorted(controls.paused_queues):
        yield ("queue", queue), 1
    for type, rules in sorted(controls.types.items()):
        if rules.paused:
            yield ("type", type), 1


def _schedules(ticks: TickCounts) -> Iterator[Metric]:
    outcomes = dict.fromkeys(_TICK_OUTCOMES, 0) | ticks.outcomes
    yield _counter(
        "fairlane_schedule_ticks_total",
        "Ticks of schedules, by what became of them.",
        ["outcome"],
        [((outcome,), outcomes[outcome]) for outcome in _TICK_OUTCOMES],
    )
    lags = Durations(LAG_BOUNDS)
    lags.add_all(ticks.lags, ticks.lag_sum)
    yield _histogram(
        "fairlane_schedule_lag_seconds",
        "How late ticks were when their tasks were stored.",
        [],
        {(): lags},
    )


def _workflows(ends: WorkflowEnds) -> Metric:
    states = [state for state in WorkflowState if state is not WorkflowState.RUNNING]
    return _counter(
        "fairlane_workflows_total",
        "Workflows that have ended, by their state.",
        ["state"],
        [((state,), ends.states.get(state, 0)) for state in states],
    )


_TICK_OUTCOMES: Final = [outcome for outcome in Outcome if outcome is not Outcome.MANUAL]


def _one(value: float) -> list[Value]:
    """Return the value of a metric without labels."""
    return [((), value)]


def _gauge(name: str, about: str, labels: Sequence[str], values: Iterable[Value]) -> Metric:
    """Return a metric that goes up and down."""
    family = GaugeMetricFamily(name, about, labels=labels)
    for names, value in values:
        family.add_metric(names, float(value))
    return family


def _counter(name: str, about: str, labels: Sequence[str], values: Iterable[Value]) -> Metric:
    """Return a metric that only grows."""
    family = CounterMetricFamily(name, about, labels=labels)
    for names, value in values:
        family.add_metric(names, float(value))
    return family


def _histogram(
    name: str, about: str, labels: Sequence[str], values: Mapping[tuple[str, ...], Durations]
) -> Metric:
    """Return a distribution of durations."""
    family = HistogramMetricFamily(name, about, labels=labels)
    for names, found in values.items():
        buckets = [(_shown(bound), float(times)) for bound, times in found.cumulative()]
        family.add_metric(names, buckets, found.seconds)
    return family


def _shown(bound: float) -> str:
    return "+Inf" if math.isinf(bound) else str(bound)
