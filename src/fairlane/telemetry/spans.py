"""OpenTelemetry spans: submit → claim → execute → settle, each the parent of the next.

The first three can be in three processes: the traceparent that is stored with the task links them.
Each attempt is a branch of its own below the submission.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from types import TracebackType
from typing import Final

from msgspec.structs import replace
from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from fairlane.core.model import Claimed, NewTask, Spec, Verdict
from fairlane.core.outcomes import Failed, Outcome, TimedOut
from fairlane.core.settlement import Settled

_PROPAGATOR: Final = TraceContextTextMapPropagator()
_UNSET_PROVIDERS: Final = (trace.ProxyTracerProvider, trace.NoOpTracerProvider)


def configured() -> Spans | None:
    """Return what makes spans, or None while the program has set up no provider."""
    provider = trace.get_tracer_provider()
    if type(provider) in _UNSET_PROVIDERS:  # isinstance is slow with abstract classes
        return None
    return Spans(provider.get_tracer("fairlane"))


class Sending(AbstractContextManager[list[NewTask]]):
    """Tasks that are being submitted, each with a span that ends when they are stored."""

    def __init__(self, tracer: Tracer, tasks: Sequence[NewTask]) -> None:
        self._tracer = tracer
        self._tasks = tasks
        self._spans: list[Span] = []

    def __enter__(self) -> list[NewTask]:
        return [self._start(task) for task in self._tasks]

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for span in self._spans:
            if error is not None:
                _fail(span, type(error).__name__)
            span.end()

    def _start(self, task: NewTask) -> NewTask:
        span = self._tracer.start_span(
            f"submit {task.type}",
            _context_of(task.spec),
            SpanKind.PRODUCER,
            _about(task, "send"),
        )
        self._spans.append(span)
        found = span.get_span_context()
        if not found.is_valid:
            return task
        trace_id = f"{found.trace_id:032x}"
        traceparent = f"00-{trace_id}-{found.span_id:016x}-{found.trace_flags:02x}"
        spec = replace(task.spec, traceparent=traceparent, trace_id=task.spec.trace_id or trace_id)
        return replace(task, spec=spec)


class RunSpans:
    """The spans of one run, starting with its claim."""

    __slots__ = ("_execution", "_task", "_tracer", "_under")

    def __init__(self, tracer: Tracer, task: Claimed, since: int) -> None:
        self._tracer = tracer
        self._task = task
        self._execution: Span | None = None
        stored = task.spec.traceparent
        claim = tracer.start_span(
            f"claim {task.type}",
            Context() if stored is None else _extracted(stored),
            SpanKind.CONSUMER,
            _about_run(task, "receive"),
            start_time=since,
        )
        claim.end()
        self._under = trace.set_span_in_context(claim, Context())

    def enter(self) -> Callable[[], None]:
        """Start the span of the run, and return what leaves its context."""
        self._execution = self._tracer.start_span(
            f"execute {self._task.type}",
            self._under,
            SpanKind.CONSUMER,
            _about_run(self._task, "process"),
        )
        self._under = trace.set_span_in_context(self._execution, Context())
        return partial(context.detach, context.attach(self._under))

    def end(self, outcome: Outcome) -> None:
        """End the span of the run, unless it has ended."""
        if self._execution is None:
            return
        match outcome:
            case Failed(error):
                _fail(self._execution, error.code or "error")
            case TimedOut():
                _fail(self._execution, "timeout")
        self._execution.end()
        self._execution = None

    def settle(self, answer: Settled | None, since: int) -> None:
        """Record a span for the settlement. Without an answer the store could not record it."""
        verdict, move = (None, None) if answer is None else answer
        status = {} if move is None else {"fairlane.task.status": move.state.value}
        span = self._tracer.start_span(
            f"settle {self._task.type}",
            self._under,
            SpanKind.CLIENT,
            {**_about_run(self._task, "settle"), **status},
            start_time=since,
        )
        if verdict is not Verdict.APPLIED:
            _fail(span, "unknown" if verdict is None else verdict.value)
        span.end()


class Spans:
    """Makes spans."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def sending(self, tasks: Sequence[NewTask]) -> Sending:
        """Return the spans of tasks that are being submitted."""
        return Sending(self._tracer, tasks)

    def claimed(self, task: Claimed, since: int) -> RunSpans:
        """Return the spans of a claimed task; `since` (nanoseconds) is when the claim began."""
        return RunSpans(self._tracer, task, since)


def _context_of(spec: Spec) -> Context | None:
    """Return the parent of a submission: the current span, unless the task has another trace."""
    if spec.traceparent is None:
        return None
    given = _extracted(spec.traceparent)
    here = trace.get_current_span().get_span_context()
    there = trace.get_current_span(given).get_span_context()
    # A handler's submissions have inherited the handler's own trace.
    return None if here.is_valid and here.trace_id == there.trace_id else given


def _extracted(traceparent: str) -> Context:
    return _PROPAGATOR.extract({"traceparent": traceparent}, Context())


def _about(task: NewTask | Claimed, operation: str) -> dict[str, str | int]:
    return {
        "messaging.system": "fairlane",
        "messaging.operation.type": operation,
        "messaging.destination.name": task.queue,
        "messaging.message.id": task.task_id,
        "fairlane.task.type": task.type,
    }


def _about_run(task: Claimed, operation: str) -> Mapping[str, str | int]:
    return {
        **_about(task, operation),
        "fairlane.task.attempt": task.attempt,
        "fairlane.worker.id": task.worker_id,
    }


def _fail(span: Span, what: str) -> None:
    """Mark a span as failed, with a name: a message may contain anything."""
    span.set_attribute("error.type", what)
    span.set_status(Status(StatusCode.ERROR))
