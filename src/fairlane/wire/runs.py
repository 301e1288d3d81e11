"""What happens in the runs of a task: errors, attempts, progress."""

from __future__ import annotations

import msgspec

from fairlane.core.model import Attempt, Progress, TaskError
from fairlane.wire.times import Moment, iso, iso_or_none, time_of, time_or_none


class ErrorView(msgspec.Struct, frozen=True):
    """Why a run failed."""

    message: str
    code: str | None
    retriable: bool
    reason: str | None
    traceback: str | None


class AttemptView(msgspec.Struct, frozen=True):
    """A run that has ended. `started_at` is null if the worker gave the task back unstarted."""

    number: int
    worker_id: str | None
    started_at: Moment | None
    ended_at: Moment
    outcome: str
    error: ErrorView | None


class ProgressView(msgspec.Struct, frozen=True):
    """The last progress report of a running task."""

    percent: float | None
    message: str | None
    updated_at: Moment


def encode_error(error: TaskError | None) -> ErrorView | None:
    """Return an error as JSON shows it."""
    return None if error is None else ErrorView(**msgspec.structs.asdict(error))


def decode_error(view: ErrorView | None) -> TaskError | None:
    """Return the error that JSON shows."""
    return None if view is None else TaskError(**msgspec.structs.asdict(view))


def encode_attempts(attempts: tuple[Attempt, ...]) -> tuple[AttemptView, ...]:
    """Return runs as JSON shows them."""
    return tuple(
        AttemptView(
            run.number,
            run.worker_id,
            iso_or_none(run.started_at),
            iso(run.ended_at),
            run.outcome,
            encode_error(run.error),
        )
        for run in attempts
    )


def decode_attempts(views: tuple[AttemptView, ...]) -> tuple[Attempt, ...]:
    """Return the runs that JSON shows."""
    return tuple(
        Attempt(
            view.number,
            view.worker_id,
            time_or_none(view.started_at),
            time_of(view.ended_at),
            view.outcome,
            decode_error(view.error),
        )
        for view in views
    )


def encode_progress(progress: Progress | None) -> ProgressView | None:
    """Return a progress report as JSON shows it."""
    if progress is None:
        return None
    return ProgressView(progress.percent, progress.message, iso(progress.updated_at))


def decode_progress(view: ProgressView | None) -> Progress | None:
    """Return the progress report that JSON shows."""
    if view is None:
        return None
    return Progress(view.percent, view.message, time_of(view.updated_at))
