"""pause, limit, settings, cancel, replay, delete: the operations of operators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from fairlane.core import machine
from fairlane.core.breaker import CLOSED, Breaker
from fairlane.core.documents import Document, Written
from fairlane.core.flow import Flow, writes
from fairlane.core.ids import checked_all
from fairlane.core.lanes import Controls, checked_limits, checked_scope
from fairlane.core.machine import Clears, Place, Verb, sources_of
from fairlane.core.model import Cancelled, Deleted, Replayed
from fairlane.core.states import TERMINAL, State
from fairlane.core.store_settings import SETTINGS
from fairlane.core.tally import MOVED
from fairlane.engines.redis.calls import Argument
from fairlane.engines.redis.context import Context
from fairlane.engines.redis.documents import write_by
from fairlane.engines.redis.record import raw_id
from fairlane.engines.redis.scripts import script

SET_CONTROLS = script("set_controls")
WRITE_SETTINGS = script("write_settings")
CANCEL = script("cancel")
REPLAY = script("replay")
DELETE = script("delete")


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
    breaker: Breaker | Literal[False] | None = None,
    timeout: float | None = None,
) -> Flow[Controls]:
    limits = checked_limits(type, rate, concurrency, breaker, timeout)
    suffix = "" if type is None else f" {type}"
    fields: dict[str, Argument] = {}
    if limits.rate is not None:
        fields[f"rate{suffix}"] = limits.rate
    if limits.concurrency is not None and type is not None:
        fields[f"concurrency{suffix}"] = limits.concurrency
    if limits.timeout is not None:
        fields[f"timeout{suffix}"] = limits.timeout
    if limits.breaker is None:
        circuit = None
    elif limits.breaker is False:
        fields[f"breaker{suffix}"] = fields[f"open_until{suffix}"] = circuit = b""
    else:
        fields[f"breaker{suffix}"] = msgspec.json.encode(limits.breaker)
        fields[f"open_until{suffix}"] = b""
        circuit = msgspec.json.encode(CLOSED)
    counted = type if concurrency else None
    return (yield from _set(self, fields, wakes=True, counted=counted, type=type, circuit=circuit))


def _set(
    self: Context,
    fields: dict[str, Argument],
    *,
    wakes: bool,
    counted: str | None = None,
    type: str | None = None,
    circuit: bytes | None = None,
) -> Flow[Controls]:
    """Set controls, and start to count the slots of the type `counted`.

    `circuit`: the new circuit of the type, None to keep it.
    """
    flat = [part for field in fields.items() for part in field]
    closed = (b"", b"") if type is None or circuit is None else (type, circuit)
    catalogue = self.catalogue
    while True:
        lanes = [lane.id for lane in catalogue.lanes.values() if lane.type == counted]
        reply = yield from self.call(
            SET_CONTROLS, catalogue.version, int(wakes), *closed, len(lanes), *lanes, *flat
        )
        catalogue = yield from self.refresh()
        if reply != b"stale":
            return catalogue.controls


def write_settings(self: Context, document: Document) -> Flow[Written]:
    """Write the settings of the store, inside an operation: see core/store_settings.py."""
    return (yield from write_by(self, WRITE_SETTINGS, SETTINGS, [document]))


@writes
def cancel(
    self: Context, task_ids: Sequence[str], *, among: frozenset[State] | None = None
) -> Flow[list[Cancelled]]:
    checked_all(task_ids)
    unique = list(dict.fromkeys(task_ids))
    reply = yield from self.call(
        CANCEL, _codes(sources_of(Verb.CANCEL, among)), *map(raw_id, unique)
    )
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
    among: frozenset[State] | None = None,
) -> Flow[list[Replayed]]:
    checked_all(task_ids)
    unique = list(dict.fromkeys(task_ids))
    move = machine.replay(reset_retry_count=reset_retry_count, level=level)
    # The script writes both out.
    assert (move.place, move.clears) == (Place.RESET, ~Clears.NOTHING), move
    reply = yield from self.call(
        REPLAY,
        _codes(sources_of(Verb.REPLAY, among)),
        _codes(TERMINAL),
        move.verb.value,
        move.state.code,
        b"" if move.retry_count is None else move.retry_count,
        move.returns or 0,
        b"" if move.level is None else move.level,
        MOVED,
        *map(raw_id, unique),
    )
    found = {
        task_id: Replayed(task_id, bool(applied), State.of(code) if code else None)
        for task_id, (applied, code) in zip(unique, reply, strict=True)
    }
    return [found[task_id] for task_id in task_ids]


@writes
def delete(
    self: Context, task_ids: Sequence[str], *, among: frozenset[State] | None = None
) -> Flow[list[Deleted]]:
    checked_all(task_ids)
    unique = list(dict.fromkeys(task_ids))
    reply = yield from self.call(
        DELETE, _codes(sources_of(Verb.DELETE, among)), *map(raw_id, unique)
    )
    found = {
        task_id: Deleted(task_id, bool(applied), State.of(code) if code else None)
        for task_id, (applied, code) in zip(unique, reply, strict=True)
    }
    return [found[task_id] for task_id in task_ids]


def _codes(states: Iterable[State]) -> bytes:
    return bytes(sorted(state.code for state in states))
