"""pause, limit, settings, cancel, replay: what operators change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar

import msgspec

from fairlane.core import machine
from fairlane.core.breaker import Breaker
from fairlane.core.documents import Document, Written
from fairlane.core.flow import Flow, writes
from fairlane.core.ids import checked_all
from fairlane.core.lanes import Controls, checked_limits, checked_scope
from fairlane.core.machine import CANCEL, Clears, Place, Verb, sources_of
from fairlane.core.model import Cancelled, Replayed
from fairlane.core.states import State
from fairlane.core.store_settings import SETTINGS
from fairlane.core.tally import TallyKey, keys_of
from fairlane.engines.postgres import dependents, moves
from fairlane.engines.postgres.accounting import count
from fairlane.engines.postgres.calls import BEGIN, COMMIT, WAKE, Query
from fairlane.engines.postgres.context import SQL as CATALOGUE
from fairlane.engines.postgres.context import Context
from fairlane.engines.postgres.documents import write_documents
from fairlane.engines.postgres.rows import array_of_ids
from fairlane.engines.postgres.statements import load

SQL = load("control")

T = TypeVar("T")


@writes
def pause(
    self: Context, paused: bool, *, queue: str | None = None, type: str | None = None
) -> Flow[Controls]:
    queue, type = checked_scope(queue), checked_scope(type)
    changes = []
    if queue is not None:
        changes.append(Query(SQL["pause_queue" if paused else "resume_queue"], (queue,)))
    if type is not None:
        changes.append(Query(SQL["pause_type"], (type, paused)))
    if queue is None and type is None:
        changes.append(Query(SQL["pause_everything"], (paused,)))
    yield from _change(_all(changes))
    if not paused:
        yield WAKE
    return (yield from self.catalogue.load()).controls


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
    changes = []
    if type is not None:
        values = (type, limits.rate, limits.concurrency, limits.timeout)
        changes.append(Query(SQL["limit_type"], values))
    if limits.breaker is not None:
        changes.append(Query(SQL["set_breaker"], (type, _stored(limits.breaker))))
    if type is None and limits.rate is not None:
        changes.append(Query(SQL["rate_everything"], (limits.rate,)))
    yield from _change(_all(changes))
    yield WAKE
    return (yield from self.catalogue.load()).controls


def _stored(breaker: Breaker | Literal[False]) -> str | None:
    return None if breaker is False else msgspec.json.encode(breaker).decode()


def write_settings(self: Context, document: Document) -> Flow[Written]:
    """Write the settings of the store, inside an operation: see core/store_settings.py."""
    return (yield from _change(write_documents(self, SETTINGS, [document])))


def _change(change: Flow[T]) -> Flow[T]:
    """Change controls or settings while no claim is under way: every later claim sees them."""
    yield BEGIN
    yield Query(SQL["close_gate"])
    answer = yield from change
    yield Query(CATALOGUE["bump"])
    yield COMMIT
    return answer


def _all(changes: list[Query]) -> Flow[None]:
    for change in changes:  # noqa: UP028 (a list would not take the replies)
        yield change


@writes
def cancel(
    self: Context, task_ids: Sequence[str], *, among: frozenset[State] | None = None
) -> Flow[list[Cancelled]]:
    checked_all(task_ids)
    meant = sources_of(Verb.CANCEL, among)
    answers: dict[str, Cancelled] = {}
    wanted = sorted(set(task_ids))
    while wanted:
        yield BEGIN
        found = yield from moves.end(wanted, meant, CANCEL)
        released = yield from dependents.release_dependents(moves.ended_of(found))
        yield COMMIT
        if released:
            yield WAKE
        wanted = []
        for task in found:
            if task.applied or task.state not in meant:
                answers[task.task_id] = Cancelled(
                    task.task_id, task.applied, task.state, task.worker_id
                )
            else:
                wanted.append(task.task_id)  # on its way from one table to another: look again
    return [
        answers.get(task_id) or Cancelled(task_id, applied=False, state=None)
        for task_id in task_ids
    ]


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
    meant = sources_of(Verb.REPLAY, among)
    move = machine.replay(reset_retry_count=reset_retry_count, level=level)
    # The statement writes both out.
    assert (move.place, move.clears) == (Place.RESET, ~Clears.NOTHING), move
    wanted = sorted(set(task_ids))
    if level is not None:
        yield from _open_streams(self, wanted, level)
    answers: dict[str, Replayed] = {}
    while wanted:
        yield BEGIN
        states = [state.code for state in meant]
        values = (move.level, move.retry_count, move.returns, move.verb.value, False)
        rows = yield Query(SQL["replay"], (array_of_ids(wanted), states, *values))
        replayed = [row for row in rows if row[0]]
        keys: list[TallyKey] = []
        free: list[str] = []
        unique: list[str] = []
        for _, task_id, before, lane, old_level, bound, keyed in replayed:
            answers[task_id] = Replayed(task_id, applied=True, state=State.of(before))
            keys += keys_of(move, lane, old_level, before)
            free += [task_id] * bound
            unique += [task_id] * keyed
        wanted = []
        for _, task_id, stood, *_ in rows:
            if task_id not in answers and State.of(stood) in meant:
                wanted.append(task_id)  # on its way from one table to another: look again
            elif task_id not in answers:
                answers[task_id] = Replayed(task_id, applied=False, state=State.of(stood))
        yield from count(keys)
        if free:
            yield from dependents.leave_parents(free)
        if unique:
            yield Query(SQL["take_keys_again"], (array_of_ids(unique),))
        yield COMMIT
    if any(answer.applied for answer in answers.values()):
        yield WAKE
    return [
        answers.get(task_id) or Replayed(task_id, applied=False, state=None) for task_id in task_ids
    ]


def _open_streams(self: Context, task_ids: list[str], level: int) -> Flow[None]:
    """Add the streams that tasks go to at another level: claims read only streams that exist."""
    streams = set()
    for (lane_id,) in (yield Query(SQL["lanes_of"], (array_of_ids(task_ids),))):
        lane = yield from self.catalogue.lane(lane_id)
        if lane is not None:
            streams.add((lane.key, level))
    if missing := self.catalogue.known.missing(streams):
        yield from self.catalogue.open(missing)
