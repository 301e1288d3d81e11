"""pause, limit, cancel, replay: what operators change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlane.core.flow import Flow, writes
from fairlane.core.ids import checked_all
from fairlane.core.lanes import Controls, checked_concurrency, checked_rate, checked_scope
from fairlane.core.machine import TRANSITIONS, Verb
from fairlane.core.model import Cancelled, Replayed
from fairlane.core.states import TERMINAL, State
from fairlane.core.tally import MOVED
from fairlane.engines.redis.context import Context
from fairlane.engines.redis.driver import Argument
from fairlane.engines.redis.record import raw_id
from fairlane.engines.redis.scripts import script

SET_CONTROLS = script("set_controls")
CANCEL = script("cancel")
REPLAY = script("replay")


@writes
def pause(
    self: Context, paused: bool, *, queue: str | None = None, type: str | None = None
) -> Flow[Controls]:
    queue, type = checked_scope(queue), checked_scope(type)
    fields: dict[str, Argument] = {}
    if queue is not None:
        fields[f"queue {queue}"] = int(paused)
    if type is not None:
        fields[f"paused {type}"] = int(paused)
    if queue is None and type is None:
        fields["paused"] = int(paused)
    return (yield from _set(self, fields, wakes=not paused))


@writes
def limit(
    self: Context,
    type: str | None,
    *,
    rate: float | None = None,
    concurrency: int | None = None,
) -> Flow[Controls]:
    type = checked_scope(type)
    suffix = "" if type is None else f" {type}"
    fields: dict[str, Argument] = {}
    if rate is not None:
        fields[f"rate{suffix}"] = checked_rate(rate)
    if concurrency is not None:
        concurrency = checked_concurrency(concurrency)
        if type is not None:
            fields[f"concurrency{suffix}"] = concurrency
    return (yield from _set(self, fields, wakes=True, counted=type if concurrency else None))


def _set(
    self: Context, fields: dict[str, Argument], *, wakes: bool, counted: str | None = None
) -> Flow[Controls]:
    """Set controls; what workers hold of the type `counted` is counted from now on."""
    flat = [part for field in fields.items() for part in field]
    catalogue = self.catalogue
    while True:
        lanes = [lane.id for lane in catalogue.lanes.values() if lane.type == counted]
        version = catalogue.version
        reply = yield from self.call(SET_CONTROLS, version, int(wakes), len(lanes), *lanes, *flat)
        catalogue = yield from self.refresh()
        if reply != b"stale":
            return catalogue.controls


@writes
def cancel(self: Context, task_ids: Sequence[str]) -> Flow[list[Cancelled]]:
    checked_all(task_ids)
    unique = list(dict.fromkeys(task_ids))
    allowed = _codes(TRANSITIONS[Verb.CANCEL].sources)
    reply = yield from self.call(CANCEL, allowed, *map(raw_id, unique))
    found = {
        task_id: Cancelled(
            task_id, bool(applied), State.of(code) if code else None, worker.decode() or None
        )
        for task_id, (applied, code, worker) in zip(unique, reply, strict=True)
    }
    return [found[task_id] for task_id in task_ids]


@writes
def replay(
    self: Context,
    task_ids: Sequence[str],
    *,
    reset_retry_count: bool = True,
    level: int | None = None,
) -> Flow[list[Replayed]]:
    checked_all(task_ids)
    unique = list(dict.fromkeys(task_ids))
    reply = yield from self.call(
        REPLAY,
        _codes(TRANSITIONS[Verb.REPLAY].sources),
        _codes(TERMINAL),
        int(reset_retry_count),
        b"" if level is None else level,
        MOVED,
        *map(raw_id, unique),
    )
    found = {
        task_id: Replayed(task_id, bool(applied), State.of(code) if code else None)
        for task_id, (applied, code) in zip(unique, reply, strict=True)
    }
    return [found[task_id] for task_id in task_ids]


def _codes(states: Iterable[State]) -> bytes:
    return bytes(sorted(state.code for state in states))
