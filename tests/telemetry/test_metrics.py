"""The facts of a store as metrics: every name, every label, and nothing made up."""

from __future__ import annotations

import math

import pytest

from fairlane.core import limits
from fairlane.core.breaker import Breaker
from fairlane.core.facts import Stream
from fairlane.core.lanes import Controls, Lane, Rules
from fairlane.core.model import WorkerStatus
from fairlane.core.schedules import Outcome, ScheduleRun
from fairlane.core.states import State
from fairlane.core.tally import BUCKETS, LOST_WORKERS, MOVED, STALE_RESULTS, Tally, TallyKey, apart
from fairlane.core.tick_counts import TickCounts
from tests.telemetry.kit import Scraped, scraped
from tests.unit.make import NOW, SECOND, facts, worker

QUEUED, EXECUTING, RETRYING = State.QUEUED.code, State.EXECUTING.code, State.RETRYING.code
LOW, MEDIUM, HIGH, CRITICAL = 2, 5, 8, 10

SEEDS = {
    "queue_depth": {"priority"},
    "queue_age_seconds": {"priority", "percentile"},
    "tasks_promoted_total": {"from", "to"},
    "task_duration_seconds_bucket": {"priority", "status", "le"},
    "task_retries_total": {"priority", "reason"},
    "task_state_total": {"status"},
    "workers_total": {"status"},
    "worker_capacity_used_ratio": set[str](),
    "worker_heartbeat_failures_total": set[str](),
    "tasks_failed_total": {"reason"},
    "tasks_dlq_total": {"reason"},
    "task_state_transitions_total": {"from", "to"},
    "task_claim_latency_seconds_bucket": {"priority", "le"},
    "starvation_risk_count": {"priority"},
    "taskqueue_tasks_submitted_total": {"type", "priority"},
    "taskqueue_tasks_completed_total": {"type", "status"},
    "taskqueue_task_duration_seconds_bucket": {"type", "le"},
    "taskqueue_queue_depth": {"priority"},
    "taskqueue_active_workers": set[str](),
    "taskqueue_dlq_size": set[str](),
}
"""The names and labels as the two documents have them."""


def ran(
    target: State, times: int = 1, label: str = "", *, level: int = MEDIUM, bucket: int = -1,
    seconds: float = 0.0, lane: int = 1,
) -> Tally:  # fmt: skip
    """So many runs that left their task so."""
    return Tally(TallyKey(lane, level, EXECUTING, target.code, label, bucket), times, seconds)


def of(*tallies: Tally) -> Scraped:
    """What is told of these transitions."""
    return scraped(facts(tallies=list(tallies)))


@pytest.mark.parametrize("name", SEEDS)
def test_the_names_and_labels_of_the_documents(name: str) -> None:
    told = of(
        Tally(TallyKey(1, MEDIUM, 0, QUEUED), 1, 0.0),
        ran(State.COMPLETED, bucket=3, seconds=0.05),
    )
    found = [labels for labels, _ in told.those(name)]
    assert found
    assert all(set(labels) == SEEDS[name] for labels in found)


def test_an_empty_store_tells_zeros_so_that_rates_begin_with_the_first_event() -> None:
    told = of()
    assert told("task_retries_total", priority="high", reason="error") == 0
    assert told("tasks_failed_total", reason="max_retries_exceeded") == 0
    assert told("tasks_promoted_total", **{"from": "low", "to": "medium"}) == 0
    assert {told("queue_depth", priority=each) for each in ("low", "medium", "high")} == {0}
    assert told("worker_capacity_used_ratio") == 0
    assert told("fairlane_build_info", version="1.2.3") == 1


def test_submissions_are_counted_once_whatever_became_of_them() -> None:
    told = of(
        Tally(TallyKey(1, MEDIUM, 0, QUEUED), 3, 0.0),
        Tally(TallyKey(1, MEDIUM, 0, State.SCHEDULED.code), 2, 0.0),
        Tally(TallyKey(1, HIGH, 0, QUEUED, MOVED), 7, 0.0),  # replayed at another level
        Tally(TallyKey(1, MEDIUM, State.COMPLETED.code, 0), 5, 0.0),  # deleted
    )
    assert told("taskqueue_tasks_submitted_total", type="email", priority="normal") == 5
    assert told.sum("taskqueue_tasks_submitted_total") == 5


def test_medium_is_called_normal_in_one_vocabulary() -> None:
    told = scraped(facts(streams=[Stream(1, MEDIUM, 4, NOW, NOW), Stream(1, 6, 1, NOW, NOW)]))
    assert told("queue_depth", priority="medium") == 5
    assert told("taskqueue_queue_depth", priority="normal") == 5
    assert told("taskqueue_queue_depth", priority="critical") == 0


def test_ages_of_waiting_tasks() -> None:
    streams = [
        Stream(1, LOW, 101, NOW - 100 * SECOND, NOW),
        Stream(1, HIGH, 1, NOW - 5 * SECOND, NOW - 5 * SECOND),
    ]
    told = scraped(facts(streams=streams))
    ages = [told("queue_age_seconds", priority="low", percentile=p) for p in ("p50", "p95", "p99")]
    assert ages == pytest.approx([50, 95, 99], abs=1)
    assert told("queue_age_seconds", priority="high", percentile="p99") == pytest.approx(5, abs=0.1)
    assert told("queue_age_seconds", priority="medium", percentile="p99") == 0
    assert told("fairlane_queue_age_seconds", percentile="p50") == pytest.approx(49, abs=2)
    assert told("fairlane_queue_oldest_age_seconds", priority="low") == 100
    assert told("fairlane_queue_oldest_age_seconds", priority="medium") == 0


def test_promotions_by_age() -> None:
    told = of(
        Tally(TallyKey(1, LOW, QUEUED, EXECUTING, "5"), 4, 0.0),
        Tally(TallyKey(1, 3, QUEUED, EXECUTING, "8"), 2, 0.0),
        Tally(TallyKey(1, LOW, QUEUED, EXECUTING, ""), 9, 0.0),
    )
    assert told("tasks_promoted_total", **{"from": "low", "to": "medium"}) == 4
    assert told("tasks_promoted_total", **{"from": "low", "to": "high"}) == 2
    assert told.sum("tasks_promoted_total") == 6


def test_retries_and_failures_by_reason() -> None:
    told = of(
        ran(State.RETRYING, 5, "error", level=HIGH),
        ran(State.RETRYING, 3, "timeout"),
        ran(State.QUEUED, 2, "worker_lost"),
        ran(State.QUEUED, 8, "not_started"),
        ran(State.DEAD_LETTER, 1, "not_started"),
        ran(State.QUEUED, 8),  # given back by a worker that left: nobody's failure
        ran(State.DEAD_LETTER, 4, "max_retries_exceeded"),
        ran(State.DEAD_LETTER, 1, "timeout"),
        ran(State.FAILED, 6, "not_retriable"),
        Tally(TallyKey(1, MEDIUM, QUEUED, State.FAILED.code, "expired"), 7, 0.0),
        ran(State.CANCELLED, 9),
    )
    assert told("task_retries_total", priority="high", reason="error") == 5
    assert told("task_retries_total", priority="medium", reason="timeout") == 3
    assert told("task_retries_total", priority="medium", reason="worker_lost") == 2
    assert told("task_retries_total", priority="medium", reason="not_started") == 8
    assert told.sum("task_retries_total") == 18
    reasons = {labels["reason"]: times for labels, times in told.those("tasks_failed_total")}
    assert reasons == {
        "max_retries_exceeded": 4,
        "timeout": 1,
        "worker_lost": 0,
        "not_started": 1,
        "not_retriable": 6,
        "expired": 7,
    }
    assert told("tasks_dlq_total", reason="max_retries_exceeded") == 4
    assert told("tasks_dlq_total", reason="timeout") == 1
    assert told.sum("tasks_dlq_total") == 6
    assert told("fairlane_task_timeouts_total") == 4
    ends = {labels["status"]: n for labels, n in told.those("taskqueue_tasks_completed_total")}
    assert ends == {"dead_letter": 6, "failed": 13, "cancelled": 9}


def test_durations_are_cumulative_histograms() -> None:
    told = of(
        ran(State.COMPLETED, 2, bucket=0, seconds=0.004),
        ran(State.COMPLETED, 3, bucket=5, seconds=0.6),
        ran(State.RETRYING, 1, "error", bucket=len(BUCKETS), seconds=4_000.0),
        ran(State.CANCELLED, 9),  # nobody knows how long
    )
    name = "task_duration_seconds"
    completed = {"priority": "medium", "status": "completed"}
    assert told(f"{name}_bucket", **completed, le="0.005") == 2
    assert told(f"{name}_bucket", **completed, le="0.25") == 5
    assert told(f"{name}_bucket", **completed, le="+Inf") == 5
    assert told(f"{name}_count", **completed) == 5
    assert told(f"{name}_sum", **completed) == pytest.approx(0.604)
    assert told(f"{name}_bucket", priority="medium", status="retrying", le="1800.0") == 0
    assert told(f"{name}_bucket", priority="medium", status="retrying", le="+Inf") == 1
    assert told("taskqueue_task_duration_seconds_count", type="email") == 6
    assert told("taskqueue_task_duration_seconds_sum", type="email") == pytest.approx(4_000.604)
    bounds = {labels["le"] for labels, _ in told.those(f"{name}_bucket", **completed)}
    assert {float(bound) for bound in bounds} == {*BUCKETS, math.inf}


def test_waits_until_claims_are_a_histogram() -> None:
    told = of(
        Tally(TallyKey(1, LOW, QUEUED, EXECUTING, "", 0), 4, 0.01),
        Tally(TallyKey(1, LOW, QUEUED, EXECUTING, "5", 13), 2, 500.0),
        Tally(TallyKey(1, HIGH, QUEUED, EXECUTING), 9, 0.0),  # counted before there were buckets
    )
    name = "task_claim_latency_seconds"
    assert told(f"{name}_bucket", priority="low", le="0.005") == 4
    assert told(f"{name}_bucket", priority="low", le="60.0") == 4
    assert told(f"{name}_bucket", priority="low", le="300.0") == 6
    assert told(f"{name}_sum", priority="low") == pytest.approx(500.01)
    assert told(f"{name}_count", priority="high") == 0
    assert list(told.those("task_duration_seconds_count")) == []


def test_transitions_from_state_to_state() -> None:
    told = of(
        Tally(TallyKey(1, MEDIUM, 0, QUEUED), 9, 0.0),
        Tally(TallyKey(1, MEDIUM, QUEUED, EXECUTING), 5, 0.0),
        Tally(TallyKey(1, MEDIUM, QUEUED, EXECUTING, "8"), 1, 0.0),
        ran(State.DEAD_LETTER, 4, "timeout"),
        Tally(TallyKey(1, MEDIUM, State.DEAD_LETTER.code, 0, MOVED), 2, 0.0),  # replayed
        Tally(TallyKey(1, HIGH, 0, QUEUED, MOVED), 2, 0.0),
        Tally(TallyKey(1, MEDIUM, State.DEAD_LETTER.code, 0), 1, 0.0),  # deleted
    )
    found = told.those("task_state_transitions_total")
    assert {(each["from"], each["to"]): n for each, n in found if n} == {
        ("none", "queued"): 9,
        ("queued", "executing"): 6,
        ("executing", "dead_letter"): 4,
        ("dead_letter", "queued"): 2,
    }
    assert told("task_state_transitions_total", **{"from": "retrying", "to": "queued"}) == 0


def test_tasks_at_risk_of_starving() -> None:
    streams = [
        Stream(1, LOW, 101, NOW - 1_000_000_000, NOW),  # evenly over the last 1,000 seconds
        Stream(1, HIGH, 7, NOW - 700_000_000, NOW - 650_000_000),
        Stream(1, MEDIUM, 7, NOW - 500_000_000, NOW),
    ]
    told = scraped(facts(streams=streams))
    found = {each["priority"]: n for each, n in told.those("starvation_risk_count")}
    assert found == {"low": 40, "medium": 0, "high": 7, "critical": 0}


def test_what_needs_a_capability() -> None:
    lanes = {
        1: Lane(1, "q", "a", ()),
        2: Lane(2, "q", "b", ("gpu",)),
        3: Lane(3, "r", "b", ("gpu", "ssd")),
    }
    tallies = [Tally(TallyKey(lane, MEDIUM, 0, QUEUED), 10**lane, 0.0) for lane in lanes]
    tallies.append(Tally(TallyKey(3, MEDIUM, QUEUED, EXECUTING), 1, 0.0))
    told = scraped(facts(lanes=lanes, tallies=tallies))
    found = {
        (each["capability"], each["status"]): n
        for each, n in told.those("fairlane_capability_tasks")
    }
    assert found == {
        ("gpu", "queued"): 1_099,
        ("gpu", "executing"): 1,
        ("ssd", "queued"): 999,
        ("ssd", "executing"): 1,
    }


def test_what_no_worker_serves() -> None:
    streams = [Stream(1, MEDIUM, 62, NOW - 1_860_000_000, NOW)]
    assert scraped(facts(streams=streams))("fairlane_unserved_tasks") == 0
    assert scraped(facts(streams=streams, workers=[]))("fairlane_unserved_tasks") == 62
    (type,) = {lane.type for lane in facts().lanes.values()}
    holding = worker(health={"held_back": [type]})
    assert scraped(facts(streams=streams, workers=[holding]))("fairlane_unserved_tasks") == 62


def test_types_are_told_apart() -> None:
    lanes = {1: Lane(1, "q", "a", ()), 2: Lane(2, "q", "b", ()), 3: Lane(3, "r", "b", ("gpu",))}
    tallies = [ran(State.COMPLETED, 10**lane, bucket=1, lane=lane) for lane in lanes]
    told = scraped(facts(lanes=lanes, tallies=tallies))
    assert told("taskqueue_tasks_completed_total", type="a", status="completed") == 10
    assert told("taskqueue_tasks_completed_total", type="b", status="completed") == 1100
    assert told("taskqueue_task_duration_seconds_count", type="b") == 1100


def test_what_happened_to_workers() -> None:
    several = [
        worker(current_tasks=("1", "2", "3")),
        worker(status=WorkerStatus.UNHEALTHY),
        worker(status=WorkerStatus.DRAINING),
        worker(lost=True, current_tasks=("4",)),
    ]
    tallies = [Tally(apart(LOST_WORKERS), 4, 0.0), Tally(apart(STALE_RESULTS), 6, 0.0)]
    told = scraped(facts(workers=several, tallies=tallies))
    states = {labels["status"]: count for labels, count in told.those("workers_total")}
    assert states == {"active": 1, "draining": 1, "unhealthy": 1, "dead": 1}
    assert told("taskqueue_active_workers") == 1
    assert told("worker_capacity_used_ratio") == pytest.approx(0.1)
    assert told("worker_heartbeat_failures_total") == 4
    assert told("fairlane_stale_results_total") == 6


def test_workers_that_hold_more_than_they_run_are_full() -> None:
    full = worker(capacity=2, current_tasks=("1", "2", "3"))
    assert scraped(facts(workers=[full]))("worker_capacity_used_ratio") == 1


def test_what_there_is_now() -> None:
    told = of(
        Tally(TallyKey(1, MEDIUM, 0, QUEUED), 9, 0.0),
        Tally(TallyKey(1, MEDIUM, QUEUED, EXECUTING), 6, 0.0),
        ran(State.DEAD_LETTER, 4, "timeout"),
        Tally(TallyKey(1, MEDIUM, State.DEAD_LETTER.code, 0), 1, 0.0),  # deleted
    )
    assert told("task_state_total", status="queued") == 3
    assert told("task_state_total", status="executing") == 2
    assert told("task_state_total", status="dead_letter") == told("taskqueue_dlq_size") == 3
    assert told("tasks_dlq_total", reason="timeout") == 4
    assert told("fairlane_queue_tasks", queue="default", status="queued") == 3
    assert told("fairlane_queue_tasks", queue="default", status="executing") == 2


def test_what_operators_have_set() -> None:
    breaker = Breaker(3, 60.0, 30.0)
    controls = Controls(
        everything=Rules(paused=True),
        paused_queues=frozenset({"q"}),
        types={
            "calm": Rules(breaker=breaker),
            "broken": Rules(breaker=breaker, open_until=NOW),
            "still": Rules(paused=True),
        },
    )
    told = scraped(facts(controls=controls))
    circuits = {labels["type"]: n for labels, n in told.those("fairlane_circuit_breaker_open")}
    assert circuits == {"calm": 0, "broken": 1}
    paused = {(each["scope"], each["name"]): n for each, n in told.those("fairlane_paused")}
    assert paused == {("everything", ""): 1, ("queue", "q"): 1, ("type", "still"): 1}
    assert of()("fairlane_paused", scope="everything", name="") == 0


def test_few_names_have_labels_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "METRIC_NAMES", 3)
    lanes = {n: Lane(n, f"queue{n}", f"type{n}", (f"cap{n}",)) for n in range(1, 11)}
    tallies = [
        tally
        for n in lanes
        for tally in (
            Tally(TallyKey(n, MEDIUM, 0, QUEUED), 2 * n, 0.0),
            Tally(TallyKey(n, MEDIUM, QUEUED, EXECUTING), n, 0.0),
            ran(State.COMPLETED, 1, lane=n, bucket=2, seconds=0.5),
        )
    ]
    found = scraped(facts(lanes=lanes, tallies=tallies))
    submitted = found.by("taskqueue_tasks_submitted_total", "type")
    assert submitted == {"type10": 20, "type9": 18, "type8": 16, "other": 2 * sum(range(1, 8))}
    assert found.by("taskqueue_tasks_completed_total", "type")["other"] == 7
    assert found.by("taskqueue_task_duration_seconds_count", "type")["other"] == 7
    for metric, label in (
        ("fairlane_queue_tasks", "queue"),
        ("fairlane_capability_tasks", "capability"),
    ):
        sums = found.by(metric, label)
        assert len(sums) == 4
        assert sum(sums.values()) == 2 * sum(range(1, 11)) - 10
        assert sums["other"] == 2 * sum(range(1, 8)) - 7


def test_a_type_that_is_called_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "METRIC_NAMES", 1)
    lanes = {n: Lane(n, "q", name, ()) for n, name in enumerate(("other", "big", "small"), start=1)}
    tallies = [
        Tally(TallyKey(lane, MEDIUM, 0, QUEUED), times, 0.0)
        for lane, times in ((0, 1), (1, 2), (2, 100), (3, 4))
    ]
    found = scraped(facts(lanes=lanes, tallies=tallies))
    assert found.by("taskqueue_tasks_submitted_total", "type") == {"big": 100, "other": 7}


def test_what_dropped_lanes_counted_stays() -> None:
    found = of(Tally(TallyKey(0, MEDIUM, 0, QUEUED), 3, 0.0), ran(State.COMPLETED, 2, lane=0))
    assert found.by("taskqueue_tasks_submitted_total", "type") == {"other": 3}
    assert found.by("taskqueue_tasks_completed_total", "type") == {"other": 2}


def test_ticks_of_schedules() -> None:
    run = ScheduleRun(NOW, Outcome.FIRED, "t1")
    handled = [
        ("a", run),
        ("a", ScheduleRun(NOW, Outcome.MISSED, None, 7)),
        ("a", ScheduleRun(NOW, Outcome.MANUAL, "t2")),
    ]
    told = scraped(facts(), TickCounts().counted(NOW, handled, [300_000]))
    assert told.by("fairlane_schedule_ticks_total", "outcome") == {"fired": 1, "missed": 7}
    assert told("fairlane_schedule_ticks_total", outcome="refused") == 0
    assert told("fairlane_schedule_lag_seconds_bucket", le="0.25") == 0
    assert told("fairlane_schedule_lag_seconds_bucket", le="0.5") == 1
    assert told("fairlane_schedule_lag_seconds_bucket", le="+Inf") == 1
    assert told("fairlane_schedule_lag_seconds_sum") == 0.3
