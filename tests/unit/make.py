"""Values for unit tests: plain ones, to be changed in the one respect that a test is about."""

from datetime import UTC, datetime
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fairlane.core.facts import Facts
from fairlane.core.lanes import Controls, Lane
from fairlane.core.model import Claimed, Task, Worker, WorkerStatus
from fairlane.core.retry import RetryPolicy
from fairlane.core.states import NOWHERE, State
from fairlane.core.tally import Tally, TallyKey

TASK_ID = "018f5e2a-7c3b-7d10-8a2e-5b6c7d8e9f01"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOW = 1_772_366_400_000_000
"""The same as engines count it."""
SECOND = 1_000_000

quick = settings(max_examples=100, deadline=None)
"""For property tests: the machine may be busy, so no example is judged by the clock."""

texts = st.text('aZ09 _"\\{}[]/\x00\n\x7f\xe9\u2028\ufeff\uffff\N{ROCKET}', max_size=8)
"""Valid Unicode with whatever may be hard to quote."""

torn_texts = st.text("a\x00\xe9\N{ROCKET}\ud800\udbff\udc00\udfff", max_size=8)
"""Texts as Python may hold them: with halves of surrogate pairs, which have no UTF-8 form."""

_CLAIMED = Claimed(
    task_id=TASK_ID,
    attempt=1,
    worker_id="w1",
    type="email",
    queue="default",
    level=5,
    payload=b"{}",
    retry_count=0,
    max_retries=3,
    returns=0,
    timeout=600.0,
    created_at=0,
    ready_at=0,
)

_TASK = Task(
    task_id=TASK_ID,
    type="email",
    queue="default",
    level=5,
    effective_level=5,
    state=State.QUEUED,
    payload=b"{}",
    attempt=1,
    retry_count=0,
    max_retries=3,
    timeout=600.0,
    returns=0,
    capabilities=(),
    created_at=NOON,
    run_at=NOON,
    ready_at=NOON,
    claimed_at=None,
    started_at=None,
    completed_at=None,
    updated_at=NOON,
    next_retry_at=None,
    expires_at=None,
    worker_id=None,
    version=1,
    result=None,
    error=None,
    attempts=(),
    progress=None,
    tags={},
    idempotency_key=None,
    trace_id=TASK_ID.replace("-", ""),
    traceparent=None,
    retry=RetryPolicy(),
)

_WORKER = Worker(
    worker_id="w1",
    status=WorkerStatus.ACTIVE,
    capacity=10,
    load=0,
    current_tasks=(),
    capabilities=frozenset(),
    queues=None,
    types=None,
    host="",
    version="",
    health=None,
    lease=30.0,
    start_within=None,
    registered_at=NOON,
    last_heartbeat=NOON,
    lost=False,
)

_FACTS = Facts(
    now=NOW,
    lanes={1: Lane(1, "default", "email", ())},
    tallies=[],
    streams=[],
    controls=Controls(),
    buckets={},
    held={},
    workers=[_WORKER],
    samples=[],
)


def claimed(**changes: Any) -> Claimed:
    """A medium task on its first run, with three retries and ten minutes."""
    return replace(_CLAIMED, **changes)


def stored(**changes: Any) -> Task:
    """The same task as an engine would show it."""
    return replace(_TASK, **changes)


def worker(**changes: Any) -> Worker:
    """An idle worker that serves everything that needs no capability."""
    return replace(_WORKER, **changes)


def facts(**changes: Any) -> Facts:
    """A store at noon with one lane, one idle worker and no tasks."""
    return replace(_FACTS, **changes)


def tally(
    source: State | None,
    target: State | None,
    times: int = 1,
    label: str = "",
    *,
    lane: int = 1,
    level: int = 5,
    seconds: float = 0.0,
) -> Tally:
    """Tasks that went from one state to another; None is nowhere."""
    left, entered = (NOWHERE if state is None else state.code for state in (source, target))
    return Tally(TallyKey(lane, level, left, entered, label), times, seconds)


def task_id(number: int) -> str:
    """One of many ids, in the order of their numbers."""
    return f"018f5e2a-7c3b-7d10-8a2e-{number:012x}"
