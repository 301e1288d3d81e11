"""What a handler says of its progress is safe to store, or its own mistake."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from fairlane import Context, Fairlane


class Recorder:
    """A run that keeps what it is told."""

    task: Any = None
    cancelled = False

    def __init__(self) -> None:
        self.told: list[tuple[float | None, str | None]] = []

    def progress(self, percent: float | None, message: str | None) -> None:
        self.told.append((percent, message))

    def transaction(self) -> Any: ...


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def ctx(recorder: Recorder) -> Context:
    return Context(recorder, Fairlane("sqlite://"), {}, logging.getLogger())


def test_progress_is_brought_into_range(ctx: Context, recorder: Recorder) -> None:
    ctx.progress()
    ctx.progress(-5)
    ctx.progress(250, "a\ud800b")
    ctx.progress(message="x" * 5_000)
    ctx.progress(50, 7)  # type: ignore[arg-type]
    assert recorder.told == [
        (None, None),
        (0, None),
        (100, "a\\ud800b"),
        (None, "x" * 1_000),
        (50, "7"),
    ]


@pytest.mark.parametrize("percent", ["x", float("nan"), float("inf"), object], ids=str)
def test_what_is_no_number_is_the_handler_s_mistake(ctx: Context, percent: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        ctx.progress(percent)
