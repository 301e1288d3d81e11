"""settle: what became of executing tasks."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import msgspec

from fairlane.core.flow import Flow, writes
from fairlane.core.ids import checked_all
from fairlane.core.machine import Settlement, Verb, verdict_on_late
from fairlane.core.model import Verdict
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import TERMINAL
from fairlane.core.tally import bucket_of
from fairlane.engines.redis.context import Context
from fairlane.engines.redis.driver import Argument
from fairlane.engines.redis.inspect import fetch
from fairlane.engines.redis.record import raw_ids_of
from fairlane.engines.redis.scripts import script

SETTLE = script("settle")

# id, attempt, microseconds it ran, number of its kind,
# then its new retries, returns and timeout, and how many microseconds it waits
_ITEM = struct.Struct(">16sIqHHHdQ")
_UNTIMED = -1
_COMPLETE = Verb.COMPLETE


@writes
def settle(
    self: Context, settlements: Sequence[Settlement], *, reaping: bool = False
) -> Flow[list[Verdict]]:
    checked_all([item.task_id for item in settlements])
    if not settlements:
        return []
    late = yield from self.call(SETTLE, *_arguments(settlements, reaping))
    verdicts = [Verdict.APPLIED] * len(settlements)
    if late:
        tasks, _ = yield from fetch(self, [settlements[at - 1].task_id for at in late])
        for at in late:
            item = settlements[at - 1]
            verdicts[at - 1] = verdict_on_late(tasks.get(item.task_id), item)
    return verdicts


def _arguments(settlements: Sequence[Settlement], reaping: bool) -> list[Argument]:
    """As the head of settle.lua lists them: kinds of change first, then items with their kind."""
    kinds: dict[tuple[object, ...], int] = {}
    heads: list[Argument] = []
    items: list[Argument] = []
    raw_ids = raw_ids_of([item.task_id for item in settlements])
    for item, raw_id in zip(settlements, raw_ids, strict=True):
        change = item.change
        bucket = bucket_of(item.seconds)
        completed = change.verb is _COMPLETE
        key: tuple[object, ...] = (item.worker_id, bucket)
        if not completed:
            key = (change.verb, change.outcome, change.reason, item.worker_id, bucket)
        kind = kinds.get(key)
        if kind is None:
            kind = kinds[key] = len(kinds) + 1
            heads += _kind(item, bucket, reaping)
        numbers = _ITEM.pack(
            raw_id,
            item.attempt,
            _UNTIMED if item.seconds is None else round(item.seconds * MICROSECONDS),
            kind,
            change.retry_count,
            change.returns,
            change.timeout or 0.0,
            int(change.after * MICROSECONDS),
        )
        if completed:
            items.append(numbers + (change.result or b""))
        else:
            problem = b"" if change.error is None else msgspec.json.encode(change.error)
            items.append(numbers + problem)
    return [int(reaping), len(kinds), *heads, *items]


def _kind(item: Settlement, bucket: int, reaping: bool) -> tuple[Argument, ...]:
    change = item.change
    return (
        change.verb.value,
        f"{change.state.code}:{change.reason or ''}:{bucket}",
        change.state.code,
        change.outcome,
        item.worker_id,
        int(change.state in TERMINAL),
        # A live worker still runs what the maintenance declared timed out: its slot stays taken.
        int(reaping and change.outcome == "timed_out"),
        int(change.verb is Verb.SNOOZE),
    )
