"""settle: what became of executing tasks."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import chain

import msgspec

from fairlane.core.breaker import verdict
from fairlane.core.flow import Flow, writes
from fairlane.core.ids import checked_all
from fairlane.core.machine import Fence, Settlement, Verb, verdict_on_late
from fairlane.core.model import Verdict
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import TERMINAL
from fairlane.core.tally import STALE_RESULTS, apart, bucket_of
from fairlane.engines.redis import breaker
from fairlane.engines.redis.calls import Argument
from fairlane.engines.redis.context import Context
from fairlane.engines.redis.inspect import fetch
from fairlane.engines.redis.record import LINE, raw_ids_of
from fairlane.engines.redis.rows import stored_key
from fairlane.engines.redis.scripts import script

SETTLE = script("settle")
COUNT = script("count")

# What other changes than completion need: new retries, returns and timeout, microseconds to wait.
_NUMBERS = struct.Struct(">HHdQ")
_UNTIMED = -1
_COMPLETE = Verb.COMPLETE


@writes
def settle(
    self: Context, settlements: Sequence[Settlement], *, reaping: bool = False
) -> Flow[list[Verdict]]:
    checked_all([item.task_id for item in settlements])
    if not settlements:
        return []
    kinds = _kinds(settlements)
    order = list(chain.from_iterable(kinds.values()))
    ordered = [settlements[at] for at in order]
    late, version, runs = yield from self.call(
        SETTLE,
        int(reaping),
        len(kinds),
        _lines(ordered),
        *chain.from_iterable(
            _head(settlements[alike[0]], reaping, len(alike)) for alike in kinds.values()
        ),
        *map(_body, ordered),
    )
    verdicts = [Verdict.APPLIED] * len(settlements)
    if late:
        places = [order[at - 1] for at in late]
        tasks, _ = yield from fetch(self, [settlements[at].task_id for at in places])
        for at in places:
            item = settlements[at]
            verdicts[at] = verdict_on_late(tasks.get(item.task_id), item)
        if not reaping and (stale := verdicts.count(Verdict.STALE)):
            yield from self.call(COUNT, stored_key(apart(STALE_RESULTS)), stale)
    if version:
        spoken = [verdict(settlements[alike[0]].change) for alike in kinds.values()]
        ended = [(spoken[kind - 1], lane, times) for kind, lane, times in runs]
        yield from breaker.count(self, version, ended)
    return verdicts


def _kinds(settlements: Sequence[Settlement]) -> dict[tuple[object, ...], list[int]]:
    """Which of them are of one kind: everything but the task, its result and its numbers.

    Kinds are settled one after another. Of several reports of one run the first counts, so each
    later one is a kind of its own, after all that came before it.
    """
    kinds: dict[tuple[object, ...], list[int]] = {}
    repeated = len({item.task_id for item in settlements}) < len(settlements)
    told: set[Fence] = set()
    for at, item in enumerate(settlements):
        change = item.change
        kind: tuple[object, ...] = (item.worker_id, item.attempt, bucket_of(item.seconds))
        if change.verb is not _COMPLETE:
            kind += (change.verb, change.outcome, change.reason)
        if repeated:
            if item.fence in told:
                kind += (at,)
            told.add(item.fence)
        alike = kinds.get(kind)
        if alike is None:
            alike = kinds[kind] = []
        alike.append(at)
    return kinds


def _lines(settlements: Sequence[Settlement]) -> bytes:
    raw_ids = raw_ids_of([item.task_id for item in settlements])
    return b"".join(
        [
            LINE.pack(
                raw_id,
                item.attempt,
                _UNTIMED if item.seconds is None else round(item.seconds * MICROSECONDS),
            )
            for raw_id, item in zip(raw_ids, settlements, strict=True)
        ]
    )


def _body(item: Settlement) -> bytes:
    change = item.change
    if change.verb is _COMPLETE:
        return change.result or b""
    numbers = _NUMBERS.pack(
        change.retry_count,
        change.returns,
        change.timeout or 0.0,
        int(change.after * MICROSECONDS),
    )
    return numbers + (b"" if change.error is None else msgspec.json.encode(change.error))


def _head(item: Settlement, reaping: bool, count: int) -> tuple[Argument, ...]:
    """A kind for the script, told by any settlement of it."""
    change = item.change
    return (
        change.verb.value,
        f"{change.state.code}:{change.reason or ''}:{bucket_of(item.seconds)}",
        change.state.code,
        change.outcome,
        item.worker_id,
        item.attempt,
        int(change.state in TERMINAL),
        # A live worker still runs what the maintenance declared timed out: its slot stays taken.
        int(reaping and change.outcome == "timed_out"),
        int(change.verb is Verb.SNOOZE),
        count,
    )
