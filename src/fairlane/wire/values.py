"""Types of values in requests, with schemas for the documentation.

The schemas check nothing: the core does, with better error messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec

from fairlane.core import limits
from fairlane.core.inputs import RESULT
from fairlane.core.priority import ALIASES, HIGHEST, LOWEST, NAMES
from fairlane.core.recurrence import INTERVAL_SECONDS_LEAST, INTERVAL_SECONDS_MOST

_PLAIN: Final = r"[^\x00-\x1f\x7f-\x9f]"
_PRIORITIES: Final = [*NAMES, *ALIASES]


def _schema(**schema: Any) -> msgspec.Meta:
    return msgspec.Meta(extra_json_schema=schema)


NAME_PATTERN: Final = rf"^[A-Za-z0-9_.:\-]{{1,{limits.NAME_LENGTH}}}$"
NameText = Annotated[str, _schema(pattern=NAME_PATTERN)]
"""A type, a queue, a capability or a worker."""
WorkerName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_.:\-]{1,100}$")]
"""The beginning of a worker's id. Checked here: the core sees only the whole id."""
SOME: Final = _schema(minItems=1)
Listed = Annotated[tuple[NameText, ...], SOME]
"""Names in a filter."""
Capabilities = Annotated[tuple[NameText, ...], _schema(maxItems=limits.CAPABILITIES)]
TaskId = Annotated[str, _schema(format="uuid", pattern=r"^[0-9a-f\-]{36}$")]
TaskIds = Annotated[tuple[TaskId, ...], _schema(maxItems=limits.BATCH)]
Parents = Annotated[tuple[TaskId, ...], _schema(maxItems=limits.DEPENDENCIES)]

Repeated = Annotated[tuple[TaskId, ...], _schema(maxItems=limits.INPUT_PARENTS)]
InputName = Annotated[str, _schema(pattern=rf"^(?!\$){_PLAIN}{{1,{limits.NAME_LENGTH}}}$")]
PathKey = Annotated[str, _schema(pattern=rf"^{_PLAIN}{{0,{limits.NAME_LENGTH}}}$")]
PathIndex = Annotated[int, _schema(minimum=0, maximum=limits.RESULT_BYTES - 1)]
InputPath = Annotated[tuple[PathKey | PathIndex, ...], _schema(maxItems=limits.INPUT_PATH)]
NestingSize = Annotated[int, _schema(minimum=RESULT, maximum=limits.INPUT_PARENTS)]
Nesting = Annotated[tuple[NestingSize, ...], _schema(maxItems=limits.INPUT_ELEMENTS)]

NodeName = Annotated[str, _schema(pattern=rf"^{_PLAIN}{{1,{limits.NAME_LENGTH}}}$")]
"""The name of a workflow, or of a task in it."""
Nodes = Annotated[int, _schema(minimum=1, maximum=limits.WORKFLOW_NODES)]

Mark = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{16}$")]
"""The id of a group of dead letters. Checked here: the core only compares it."""

Key = Annotated[str, _schema(pattern=rf"^{_PLAIN}{{1,{limits.NAME_LENGTH}}}$")]
Trace = Annotated[str, _schema(pattern=rf"^[ -~]{{1,{limits.TRACE_LENGTH}}}$")]
Line = Annotated[str, _schema(pattern=rf"^{_PLAIN}{{0,{limits.NAME_LENGTH}}}$")]
TagText = Annotated[str, _schema(pattern=rf"^{_PLAIN}{{0,{limits.TAG_LENGTH}}}$")]
Tags = Annotated[Mapping[TagText, TagText], _schema(maxProperties=limits.TAGS)]
TagPair = Annotated[
    str, _schema(pattern=rf"^[^:\x00-\x1f\x7f-\x9f]{{1,200}}:{_PLAIN}{{0,{limits.TAG_LENGTH}}}$")
]
"""A tag in a query: name:value."""

PriorityName = Annotated[str, _schema(enum=_PRIORITIES)]
Level = Annotated[int, _schema(minimum=LOWEST, maximum=HIGHEST)]
PriorityText = Annotated[str, _schema(enum=[*_PRIORITIES, *map(str, range(LOWEST, HIGHEST + 1))])]
"""A priority in a query, by name or by number."""

Retries = Annotated[int, _schema(minimum=0, maximum=limits.RETRIES)]
Attempts = Annotated[int, _schema(minimum=1, maximum=limits.RETRIES + 1)]
Timeout = Annotated[float, _schema(exclusiveMinimum=0, maximum=limits.TIMEOUT_SECONDS)]
Delay = Annotated[float, _schema(minimum=0, maximum=limits.DELAY_SECONDS)]
Kept = Annotated[
    float, _schema(minimum=limits.RETENTION_SECONDS_LEAST, maximum=limits.RETENTION_SECONDS)
]
Spread = Annotated[float, _schema(minimum=0, maximum=limits.REQUEUE_SPREAD_SECONDS)]
Factor = Annotated[float, _schema(minimum=1, maximum=limits.RETRIES)]
Share = Annotated[float, _schema(minimum=0, maximum=1)]
Period = Annotated[float, _schema(exclusiveMinimum=0, maximum=limits.UNIQUE_SECONDS)]
TypeTimeout = Annotated[float, _schema(minimum=0, maximum=limits.TIMEOUT_SECONDS)]
Rate = Annotated[float, _schema(minimum=0, maximum=limits.RATE_PER_SECOND)]
Most = Annotated[int, _schema(minimum=0, maximum=limits.CONCURRENCY)]
Capacity = Annotated[int, _schema(minimum=1, maximum=limits.CONCURRENCY)]
Failures = Annotated[int, _schema(minimum=1, maximum=limits.BREAKER_FAILURES)]
BreakerTime = Annotated[float, _schema(exclusiveMinimum=0, maximum=limits.BREAKER_SECONDS)]

Due = Annotated[datetime, _schema(format="date-time")]
"""A time with its time zone."""

ScheduleId = Annotated[
    str, _schema(pattern=rf"^[A-Za-z0-9_.:\-]{{1,{limits.SCHEDULE_ID_LENGTH}}}$")
]
CronText = Annotated[
    str,
    _schema(minLength=1, maxLength=limits.CRON_LENGTH, examples=["30 2 * * MON-FRI", "@daily"]),
]
"""A cron expression of five fields, or a macro."""
ZoneName = Annotated[str, _schema(minLength=1, examples=["Europe/Berlin", "UTC"])]
Interval = Annotated[
    float,
    _schema(minimum=INTERVAL_SECONDS_LEAST, maximum=INTERVAL_SECONDS_MOST, examples=[300]),
]
Offset = Annotated[float, _schema(minimum=0, maximum=INTERVAL_SECONDS_MOST)]
Window = Annotated[float, _schema(minimum=1, maximum=limits.DELAY_SECONDS)]
MostTicks = Annotated[int, _schema(minimum=1, maximum=limits.SUBMIT_BATCH)]
Count = Annotated[int, _schema(minimum=1, maximum=limits.SCHEDULE_COUNT)]
Note = Annotated[str, _schema(pattern=rf"^{_PLAIN}{{0,{limits.SCHEDULE_NOTE_CHARACTERS}}}$")]
