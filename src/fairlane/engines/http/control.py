"""pause, limit, settings, cancel, replay, delete, mark: changes by operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from fairlane.core.breaker import Breaker
from fairlane.core.errors import NotSupported
from fairlane.core.filters import Filter
from fairlane.core.flow import Flow, writes
from fairlane.core.ids import checked_all
from fairlane.core.lanes import Controls, checked_limits, checked_scope
from fairlane.core.model import Cancelled, Deleted, Replayed, Swept, WorkerStatus
from fairlane.core.states import State
from fairlane.core.store_settings import DEFAULT, Changes, StoreSettings
from fairlane.core.text import is_name
from fairlane.engines.http.calls import NO_CONTENT, Call, decode, encode, part, post, send
from fairlane.engines.http.errors import code_of, details_of, error_of
from fairlane.engines.http.filters import admits_nothing, body_of
from fairlane.engines.http.inspect import CONTROL, DEFINITIONS, SETTINGS, TASKS, controls_now
from fairlane.http_client import Reply
from fairlane.wire.changes import CancelledView, ChangeView, SweptView
from fairlane.wire.limits import ControlsView, QueueState, TypeRules
from fairlane.wire.settings import patch_of
from fairlane.wire.workers import WorkerState


@writes
def pause(
    _: object, paused: bool, *, queue: str | None = None, type: str | None = None
) -> Flow[Controls]:
    checked_scope(queue)
    if queue is not None:
        verb = "pause" if paused else "resume"
        yield from post(f"/api/v1/queues/{part(queue)}/{verb}", {}, QueueState)
    if type is not None:
        yield from _patch_type(type, {"paused": paused})
    if queue is None and type is None:
        yield from post(CONTROL, {"paused": paused}, ControlsView)
    return (yield from controls_now())


@writes
def limit(
    _: object,
    type: str | None,
    *,
    rate: float | None = None,
    concurrency: int | None = None,
    breaker: Breaker | Literal[False] | None = None,
    timeout: float | None = None,
) -> Flow[Controls]:
    wanted = checked_limits(type, rate, concurrency, breaker, timeout)
    patch: dict[str, Any] = {}
    if wanted.rate is not None:
        patch["rate_limit"] = wanted.rate
    if type is None:
        yield from post(CONTROL, patch, ControlsView)
        return (yield from controls_now())
    if wanted.concurrency is not None:
        patch["concurrency"] = wanted.concurrency
    if wanted.timeout is not None:
        patch["timeout_seconds"] = wanted.timeout
    if wanted.breaker is False:
        patch["circuit_breaker"] = None
    elif wanted.breaker is not None:
        patch["circuit_breaker"] = {
            "failures": wanted.breaker.failures,
            "within_seconds": wanted.breaker.within,
            "cooldown_seconds": wanted.breaker.cooldown,
        }
    yield from _patch_type(type, patch)
    return (yield from controls_now())


@writes
def change_settings(
    _: object, changes: Changes, *, version: int | None = None
) -> Flow[StoreSettings]:
    DEFAULT.with_changes(changes)  # JSON would turn a NaN into null, which means never
    call = Call("PATCH", SETTINGS, encode(patch_of(changes, version)))
    return (yield from send(call, StoreSettings))


@writes
def drop_definition(_: object, type: str) -> Flow[bool]:
    if not is_name(type):
        return False
    reply: Reply = yield Call("DELETE", f"{DEFINITIONS}/{part(type)}")
    if reply.status == NO_CONTENT:
        return True
    if code_of(reply) == "type_not_found":
        return False
    raise error_of(reply)


def _patch_type(type: str, patch: dict[str, Any]) -> Flow[TypeRules]:
    checked_scope(type)
    call = Call("PATCH", f"/api/v1/types/{part(type)}", encode(patch))
    return (yield from send(call, TypeRules))


@writes
def cancel(
    _: object, task_ids: Sequence[str], *, among: frozenset[State] | None = None
) -> Flow[list[Cancelled]]:
    if len(task_ids) == 1 and among is None:  # needs only the scope to submit
        return [(yield from _cancel_one(task_ids[0]))]
    changes = yield from _change("cancel", task_ids, {}, among)
    return [
        Cancelled(each.task_id, each.applied, each.previous_status, each.worker_id or None)
        for each in changes
    ]


@writes
def replay(
    _: object,
    task_ids: Sequence[str],
    *,
    reset_retry_count: bool = True,
    level: int | None = None,
    among: frozenset[State] | None = None,
) -> Flow[list[Replayed]]:
    terms = _terms(reset_retry_count, level)
    changes = yield from _change("replay", task_ids, terms, among)
    return [Replayed(each.task_id, each.applied, each.previous_status) for each in changes]


@writes
def delete(
    _: object, task_ids: Sequence[str], *, among: frozenset[State] | None = None
) -> Flow[list[Deleted]]:
    changes = yield from _change("delete", task_ids, {}, among)
    return [Deleted(each.task_id, each.applied, each.previous_status) for each in changes]


@writes
def cancel_where(_: object, filter: Filter, cursor: str | None = None) -> Flow[Swept]:
    return (yield from _sweep("cancel", filter, cursor, {}))


@writes
def replay_where(
    _: object,
    filter: Filter,
    cursor: str | None = None,
    *,
    reset_retry_count: bool = True,
    level: int | None = None,
) -> Flow[Swept]:
    return (yield from _sweep("replay", filter, cursor, _terms(reset_retry_count, level)))


@writes
def delete_where(_: object, filter: Filter, cursor: str | None = None) -> Flow[Swept]:
    return (yield from _sweep("delete", filter, cursor, {}))


@writes
def mark(_: object, worker_id: str, status: WorkerStatus) -> Flow[bool]:
    if status is not WorkerStatus.DRAINING:
        raise NotSupported(
            "Over HTTP a worker can be drained; its other statuses it reports itself."
        )
    path = f"/api/v1/workers/{part(worker_id)}/drain"
    reply: Reply = yield Call("POST", path, b"{}")
    if code_of(reply) == "worker_not_found":
        return False
    decode(reply, WorkerState)
    return True


def _cancel_one(task_id: str) -> Flow[Cancelled]:
    checked_all([task_id])
    reply: Reply = yield Call("DELETE", f"{TASKS}/{task_id}")
    match code_of(reply):
        case "task_not_found":
            return Cancelled(task_id, applied=False, state=None)
        case "conflict":
            return Cancelled(task_id, applied=False, state=State(details_of(reply)["status"]))
        case _:
            done = decode(reply, CancelledView)
            return Cancelled(task_id, True, done.previous_status, done.worker_id)  # noqa: FBT003


def _change(
    verb: str, task_ids: Sequence[str], terms: dict[str, Any], among: frozenset[State] | None
) -> Flow[tuple[ChangeView, ...]]:
    checked_all(task_ids)
    if not task_ids:
        return ()
    states = {} if among is None else {"status": sorted(among)}
    body = {"task_ids": task_ids, **states, **terms}
    answer = yield from post(f"{TASKS}/{verb}", body, SweptView)
    assert isinstance(answer.results, tuple)
    return answer.results


def _sweep(verb: str, filter: Filter, cursor: str | None, terms: dict[str, Any]) -> Flow[Swept]:
    if admits_nothing(filter):
        return Swept(0, 0, None)
    body = {**body_of(filter, cursor), **terms}
    answer = yield from post(f"{TASKS}/{verb}", body, SweptView)
    return Swept(answer.matched, answer.applied, answer.next_cursor)


def _terms(reset_retry_count: bool, level: int | None) -> dict[str, Any]:
    return {"reset_retry_count": reset_retry_count, "new_priority": level}
