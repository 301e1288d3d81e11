"""What callers say about schedules, checked at once; and `@app.cron` and `@app.every`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, TypedDict, TypeVar

from fairlane.core import limits, recurrence
from fairlane.core.durations import Seconds
from fairlane.core.errors import InvalidArguments, InvalidSchedule
from fairlane.core.recurrence import Recurrence
from fairlane.core.schedules import Missed, NewSchedule, Overlap, checked_time, new_schedule
from fairlane.runtime.schedules import Preview, checked_number
from fairlane.runtime.shapes import Prepared
from fairlane.runtime.task import TaskFunction

T = TypeVar("T", bound=TaskFunction[..., Any])


class ScheduleOptions(TypedDict, total=False):
    """What happens to the ticks of a schedule, all of it optional. See `core/schedules.py`."""

    missed: Missed | Literal["skip", "once", "all"]
    most: int
    within: Seconds
    overlap: Overlap | Literal["skip", "queue", "replace", "allow"]
    jitter: Seconds
    starts_at: datetime | None
    ends_at: datetime | None
    count: int | None
    pause_after_failures: int | None
    note: str


def schedule_of(
    schedule_id: str, rule: Recurrence, call: Prepared[Any], options: ScheduleOptions
) -> NewSchedule:
    """Return a schedule with everything checked. Raises InvalidSchedule."""
    unknown = sorted(options.keys() - ScheduleOptions.__annotations__.keys())
    if unknown:
        raise InvalidSchedule(
            f"A schedule has no option {', '.join(unknown)}. There are "
            f"{', '.join(sorted(ScheduleOptions.__annotations__))}."
        )
    if not isinstance(call, Prepared):
        raise InvalidSchedule("A schedule needs a call of a task: task.prepare(…).")
    size = len(call.task.payload)
    if size > limits.PAYLOAD_BYTES:
        raise InvalidSchedule(
            f"The payload of a schedule has at most {limits.PAYLOAD_BYTES:,} bytes, not {size:,}: "
            "keep the data elsewhere, and pass the place."
        )
    return new_schedule(schedule_id, rule, call.task, **options)


def preview_of(rule: Recurrence, n: int, after: datetime | None) -> Preview:
    """Return when a rule fires, in words, and its next ticks. Raises InvalidSchedule."""
    begin = checked_time("after", datetime.now(UTC) if after is None else after)
    return Preview(rule.in_words(), recurrence.preview(rule, begin, checked_number(n)))


class ScheduleDecorator:
    """`@app.cron(…)` or `@app.every(…)` before it is applied to a task."""

    def __init__(
        self,
        declare: Callable[[NewSchedule], None],
        rule: Recurrence,
        schedule_id: str | None,
        arguments: Mapping[str, Any] | None,
        options: ScheduleOptions,
    ) -> None:
        self._declare = declare
        self._rule = rule
        self._id = schedule_id
        self._arguments = {} if arguments is None else dict(arguments)
        self._options = options

    def __call__(self, task: T, /) -> T:
        if not isinstance(task, TaskFunction):
            raise InvalidSchedule(
                "A schedule is declared for a task: put @app.cron and @app.every above @app.task."
            )
        schedule_id = task.name if self._id is None else self._id
        try:
            call = task.prepare(**self._arguments)
        except InvalidArguments as error:
            raise InvalidArguments(
                f"{error.message} A schedule calls {task.name} with its arguments={{…}}."
            ) from None
        self._declare(schedule_of(schedule_id, self._rule, call, self._options))
        return task
