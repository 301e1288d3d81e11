"""Schedules in requests: what somebody declares, changes or asks of them.

A declaration that comes over HTTP makes the same schedule, with the same fingerprint, as one that a
process makes which uses the store itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec

from fairlane.core import limits, recurrence, schedules
from fairlane.core.definitions import Template
from fairlane.core.ids import new_id
from fairlane.core.model import NewTask, moment_or_none
from fairlane.core.priority import MICROSECONDS
from fairlane.core.recurrence import Cron, Recurrence
from fairlane.core.schedules import Missed, NewSchedule, Overlap, Policy, Schedule, new_schedule
from fairlane.wire.policies import RetryView
from fairlane.wire.submission import JsonObject, TaskRequest
from fairlane.wire.values import (
    Capabilities,
    Count,
    CronText,
    Delay,
    Due,
    Interval,
    Level,
    MostTicks,
    NameText,
    Note,
    Offset,
    PriorityName,
    Retries,
    ScheduleId,
    Tags,
    Timeout,
    Trace,
    Window,
    ZoneName,
)

UnsetType = msgspec.UnsetType
UNSET = msgspec.UNSET

_RULE: Final = ("cron", "tz", "every_seconds", "offset_seconds")
_OPTIONS: Final = {"within_seconds": "within", "jitter_seconds": "jitter"} | {
    name: name
    for name in (
        *("missed", "most", "overlap", "starts_at", "ends_at", "count", "pause_after_failures"),
        "note",
    )
}
"""Options of `new_schedule` by their names here, some of which have the unit."""


class ScheduledTask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the tasks of a schedule have in common: fields as in a submission. What is left out is
    taken from the definition of the type, unless `use_definition` is false. They are never unique:
    the overlap of the schedule says what happens instead."""

    task_type: NameText
    parameters: JsonObject = msgspec.field(default_factory=msgspec.Raw)
    queue: NameText | UnsetType = UNSET
    priority: PriorityName | Level | UnsetType = UNSET
    required_capabilities: Capabilities | UnsetType = UNSET
    max_retries: Retries | UnsetType = UNSET
    timeout_seconds: Timeout | UnsetType | None = UNSET
    delay_seconds: Delay | UnsetType = UNSET
    tags: Tags | UnsetType = UNSET
    trace_id: Trace | UnsetType = UNSET
    traceparent: Trace | UnsetType = UNSET
    retry_policy: RetryView | UnsetType = UNSET
    use_definition: bool | UnsetType = UNSET

    @property
    def defined_type(self) -> str | None:
        """The type whose definition counts; None if that is not wanted."""
        return self.task_type if self.use_definition is not False else None

    def task(self, template: Template | None = None) -> NewTask:
        """Return the model of the tasks, checked. `template`: that of `defined_type`."""
        return TaskRequest(**_given(self), unique=False).task(template)


class SchedulePatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes to a schedule. What is left out stays, but for a `task`, which is replaced as a
    whole. A rule is either `cron` with `tz` (UTC if left out), or `every_seconds`, counted from
    1970, with `offset_seconds`."""

    cron: CronText | UnsetType | None = UNSET
    tz: ZoneName | UnsetType | None = UNSET
    every_seconds: Interval | UnsetType | None = UNSET
    offset_seconds: Offset | UnsetType | None = UNSET
    task: ScheduledTask | UnsetType = UNSET
    missed: Missed | UnsetType = UNSET
    """What becomes of ticks that nobody fired in time: none is fired, the newest one, or all."""
    most: MostTicks | UnsetType = UNSET
    """How many missed ticks are fired at the most."""
    within_seconds: Window | UnsetType = UNSET
    """Ticks that are older are never fired."""
    overlap: Overlap | UnsetType = UNSET
    """What becomes of a tick while the task of the previous one has not ended."""
    jitter_seconds: Delay | UnsetType = UNSET
    starts_at: Due | UnsetType | None = UNSET
    ends_at: Due | UnsetType | None = UNSET
    count: Count | UnsetType | None = UNSET
    """How many ticks are fired, until the schedule ends."""
    pause_after_failures: Count | UnsetType | None = UNSET
    note: Note | UnsetType = UNSET
    allow_unknown_type: bool | UnsetType = UNSET
    """Store it although no worker has published the type of its task, and none that runs handles
    it. Otherwise it is refused with `unknown_type`."""

    @property
    def defined_type(self) -> str | None:
        """The type of its task whose definition counts; None if there is none, or not wanted."""
        return self.task.defined_type if isinstance(self.task, ScheduledTask) else None

    def applied(self, schedule: Schedule, template: Template | None = None) -> NewSchedule:
        """Return the schedule with these changes, checked. `template`: that of `defined_type`."""
        if isinstance(self.task, ScheduledTask):
            task = self.task.task(template)
        else:
            before = schedule.template
            task = before.task(new_id(), schedule.payload, before.spec)
        options = options_of(schedule.policy, schedule.note) | self._options()
        return new_schedule(schedule.schedule_id, self._rule_after(schedule.rule), task, **options)

    def _rule_after(self, before: Recurrence) -> Recurrence:
        kept = rule_fields(before)
        said = {name: value for name, value in _given(self).items() if name in _RULE}
        other = "every_seconds" if isinstance(before, Cron) else "cron"
        if said.get(other) is not None:
            kept = {}
        return _rule_of(kept | said)

    def _options(self) -> dict[str, Any]:
        """Return the options of `new_schedule` that are said."""
        said = _given(self)
        return {option: said[name] for name, option in _OPTIONS.items() if name in said}


class ScheduleRequest(SchedulePatch, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A schedule: its id, its rule, its task and its policies. A rule is either `cron` with `tz`
    (UTC if left out), or `every_seconds`, counted from 1970, with `offset_seconds`."""

    schedule_id: ScheduleId
    task: ScheduledTask

    @property
    def names(self) -> str:
        """What is to be changed, for the audit log."""
        return self.schedule_id

    def schedule(self, template: Template | None = None) -> NewSchedule:
        """Return the schedule, checked. `template`: that of `defined_type`."""
        rule, task = _rule_of(_given(self)), self.task.task(template)
        return new_schedule(self.schedule_id, rule, task, **self._options())


class ScheduleBatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Up to 100 schedules to create or to change, all or none. `version`: only if they have this
    version, 0 if they must not exist."""

    schedules: Annotated[
        tuple[ScheduleRequest, ...],
        msgspec.Meta(extra_json_schema={"maxItems": limits.SCHEDULE_PAGE}),
    ]
    version: int | None = None

    @property
    def allow_unknown_type(self) -> bool:
        """Whether none of their types is checked."""
        return all(each.allow_unknown_type is True for each in self.schedules)

    @property
    def names(self) -> str:
        """What is to be changed, for the audit log."""
        return " ".join(each.schedule_id for each in self.schedules)


class Declarations(ScheduleBatch, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Up to 100 schedules that the code of an application declares, all or none. Nobody else may
    change them; those that it no longer declares go away after a day."""

    owner: NameText
    """The name of the application."""


def _rule_of(said: Mapping[str, Any]) -> Recurrence:
    """Return the rule that is meant by these fields, among others. Raises InvalidSchedule."""
    return recurrence.rule_of(*(said.get(name) for name in _RULE))


def rule_fields(rule: Recurrence) -> dict[str, Any]:
    """Return the fields of a rule."""
    if isinstance(rule, Cron):
        return {"cron": rule.expression, "tz": rule.zone}
    return {
        "every_seconds": rule.interval / MICROSECONDS,
        "offset_seconds": rule.offset / MICROSECONDS,
    }


def options_of(policy: Policy, note: str) -> dict[str, Any]:
    """Return the options of `new_schedule` for a policy and a note."""
    options = msgspec.structs.asdict(policy) | {"note": note}
    for name in ("starts_at", "ends_at"):
        options[name] = moment_or_none(options[name])
    return options


def request_of(schedule: NewSchedule, *, allow_unknown_type: bool = True) -> ScheduleRequest:
    """Return a schedule as it is sent. Everything is said, so that no default changes it."""
    options = options_of(schedule.policy, schedule.note)
    said = {name: options[option] for name, option in _OPTIONS.items()}
    return ScheduleRequest(
        schedule_id=schedule.schedule_id,
        task=_task_of(schedule.template, schedule.payload),
        allow_unknown_type=allow_unknown_type,
        **rule_fields(schedule.rule),
        **said,
    )


def _task_of(template: schedules.Template, payload: bytes) -> ScheduledTask:
    """Return the task of a schedule as it is sent."""
    spec = template.spec
    return ScheduledTask(
        task_type=template.type,
        parameters=msgspec.Raw(payload),
        queue=template.queue,
        priority=template.level,
        required_capabilities=template.capabilities,
        max_retries=template.max_retries,
        timeout_seconds=template.timeout if spec.timed else UNSET,
        delay_seconds=template.delay,
        tags=spec.tags,
        trace_id=spec.trace_id or UNSET,
        traceparent=spec.traceparent or UNSET,
        retry_policy=RetryView.of(spec.retry),
        use_definition=False,
    )


def _given(request: msgspec.Struct) -> dict[str, Any]:
    """Return the fields that a request has."""
    values = ((name, getattr(request, name)) for name in request.__struct_fields__)
    return {name: value for name, value in values if value is not UNSET}
