"""Spans as an exporter gets them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

ELSEWHERE: Final = "00-" + "ab" * 16 + "-" + "cd" * 8 + "-01"


class Kept:
    """The spans that have ended."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    def named(self, name: str) -> Sequence[ReadableSpan]:
        return [span for span in self._exporter.get_finished_spans() if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.named(name)
        return span

    def names(self) -> list[str]:
        return [span.name for span in self._exporter.get_finished_spans()]


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    """A program that has set up OpenTelemetry (which can be done only once in a process)."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    return Kept(exporter)


def trace_of(span: ReadableSpan) -> str:
    assert span.context is not None
    return f"{span.context.trace_id:032x}"


def is_under(span: ReadableSpan, above: ReadableSpan) -> bool:
    assert span.parent is not None
    assert above.context is not None
    return (span.parent.trace_id, span.parent.span_id) == (
        above.context.trace_id,
        above.context.span_id,
    )
