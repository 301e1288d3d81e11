"""Samples of the counters for charts, and groups of dead letters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec

from fairlane.core.analysis import Analysis, Group, mark_of
from fairlane.core.facts import Sample
from fairlane.core.priority import Band
from fairlane.wire.times import Instant, Moment, iso, iso_of

SAMPLES = 10_000
"""More than the store keeps."""


class SampleQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The time of the first sample; default: the oldest one."""

    since: Instant | msgspec.UnsetType = msgspec.UNSET
    limit: Annotated[int, msgspec.Meta(ge=1, le=SAMPLES)] = 1_000


class SampleView(msgspec.Struct, frozen=True, kw_only=True):
    """The counters at a time. All except `depths` (queued tasks by priority) only grow: the
    difference of two samples is what happened between them."""

    timestamp: Moment
    submitted: int
    started: int
    completed: int
    failed: int
    timeouts: int
    lost_workers: int
    stale_results: int
    execution_seconds: float
    depths: Mapping[Band, int]


class SampleList(msgspec.Struct, frozen=True):
    """Samples, oldest first, and the counters now."""

    samples: tuple[SampleView, ...]
    current: SampleView


class GroupView(msgspec.Struct, frozen=True, kw_only=True):
    """Dead letters with the same type, error code and shape of message, and the id of one of them.
    `failure` selects the group when dead letters are listed, replayed or deleted."""

    failure: str
    type: str
    code: str | None
    shape: str
    count: int
    first_seen: Moment
    last_seen: Moment
    retriable_share: float
    example: str


class AnalysisView(msgspec.Struct, frozen=True):
    """Groups, largest first. `complete` is false if there are more dead letters than were read."""

    groups: tuple[GroupView, ...]
    analysed: int
    complete: bool


def samples_of(samples: Iterable[Sample], current: Sample) -> SampleList:
    """Return samples as JSON shows them."""
    return SampleList(tuple(map(_sample, samples)), _sample(current))


def analysis_of(analysis: Analysis) -> AnalysisView:
    """Return groups of dead letters as JSON shows them."""
    return AnalysisView(tuple(map(_group, analysis.groups)), analysis.analysed, analysis.complete)


def _sample(sample: Sample) -> SampleView:
    return SampleView(
        timestamp=iso_of(sample.at),
        submitted=sample.submitted,
        started=sample.started,
        completed=sample.completed,
        failed=sample.failed,
        timeouts=sample.timeouts,
        lost_workers=sample.lost_workers,
        stale_results=sample.stale_results,
        execution_seconds=sample.seconds,
        depths=dict(zip(Band, sample.depths, strict=True)),
    )


def _group(group: Group) -> GroupView:
    return GroupView(
        failure=mark_of((group.type, group.code, group.shape)),
        type=group.type,
        code=group.code,
        shape=group.shape,
        count=group.count,
        first_seen=iso(group.first_seen),
        last_seen=iso(group.last_seen),
        retriable_share=group.retriable_share,
        example=group.example,
    )
