"""Schedules: pausing and resuming, runs besides the ticks, and ticks of a rule to come."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from fairlane.core.recurrence import Recurrence, rule_of
from fairlane.core.schedules import Missed, Overlap
from fairlane.wire.schedule_views import TickView
from fairlane.wire.values import CronText, Due, Interval, Note, Offset, TaskId, ZoneName

PREVIEW_TICKS: Final = 100


class PauseRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A pause: why, and until when (null: until somebody resumes the schedule)."""

    note: Note = ""
    until: Due | None = None


class ResumeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What becomes of the ticks of the pause: none is fired, the newest one, or all."""

    missed: Missed = Missed.SKIP


class RunRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run besides the ticks. `at`: the tick that the handler is told, now by default. `task_id`:
    a UUID that the client chooses; a second request with the same one does nothing."""

    at: Due | None = None
    task_id: TaskId | None = None


class BackfillRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ticks from `since` to before `until` are fired again, up to 1,000. `overlap`: whether
    they wait for each other, by default as the schedule says. `dry_run`: only count them.
    `task_id`: the UUID of the first task; a second request with the same one does nothing."""

    since: Due
    until: Due
    overlap: Overlap | None = None
    dry_run: bool = False
    task_id: TaskId | None = None


class PreviewRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule, and how many of its next ticks to return; `after`: a time, now by default."""

    cron: CronText | None = None
    tz: ZoneName | None = None
    every_seconds: Interval | None = None
    offset_seconds: Offset | None = None
    count: Annotated[int, msgspec.Meta(ge=1, le=PREVIEW_TICKS)] = 5
    after: Due | None = None

    def rule(self) -> Recurrence:
        """Return the rule, checked."""
        return rule_of(self.cron, self.tz, self.every_seconds, self.offset_seconds)


class RunReply(msgspec.Struct, frozen=True):
    """The task that was submitted."""

    task_id: str


class BackfillReply(msgspec.Struct, frozen=True):
    """How many ticks there are, and their tasks, the oldest tick first; none after a dry run."""

    count: int
    task_ids: tuple[str, ...]


class PreviewView(msgspec.Struct, frozen=True):
    """A rule in words, and its next ticks."""

    in_words: str
    ticks: tuple[TickView, ...]
