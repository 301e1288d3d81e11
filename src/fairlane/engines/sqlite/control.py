"""pause, limit, settings, cancel, replay: what operators change."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

import msgspec

from fairlane.core import machine
from fairlane.core.breaker import Breaker
from fairlane.core.documents import Document, Written
from fairlane.core.flow import Flow, writes
from fairlane.core.ids import checked_all
from fairlane.core.lanes import Controls, checked_limits, checked_scope
from fairlane.core.machine import CANCEL, Verb, sources_of
from fairlane.core.model import Cancelled, Replayed
from fairlane.core.states import State
from fairlane.core.store_settings import SETTINGS
from fairlane.engines.files import statements
from fairlane.engines.sqlite import dependents
from fairlane.engines.sqlite.accounting import Accounts
from fairlane.engines.sqlite.calls import WAKE, Execute
from fairlane.engines.sqlite.context import SQL as CATALOGUE
from fairlane.engines.sqlite.context import Context
from fairlane.engines.sqlite.dependents import SQL as ENDS
from fairlane.engines.sqlite.documents import write_documents
from fairlane.engines.sqlite.moves import apply_move, standing

SQL = statements(__package__, "control")


@writes
def pause(
    self: Context, paused: bool, *, queue: str | None = None, type: str | None = None
) -> Flow[Controls]:
    queue, type = checked_scope(queue), checked_scope(type)
    if queue is not None:
        yield Execute(SQL["pause_queue" if paused else "resume_queue"], (queue,))
    if type is not None:
        yield Execute(SQL["pause_type"], (type, paused))
    if queue is None and type is None:
        yield Execute(SQL["pause_everything"], (paused,))
    yield Execute(CATALOGUE["bump"])
    if not paused:
        yield WAKE
    return (yield from self.catalogue.controls())


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
    if type is not None:
        values = (type, limits.rate, limits.concurrency, limits.timeout)
        yield Execute(SQL["limit_type"], values)
        if limits.breaker is not None:
            stored = None if limits.breaker is False else msgspec.json.encode(limits.breaker)
            yield Execute(SQL["set_breaker"], (stored, type))
    elif limits.rate is not None:
        yield Execute(SQL["rate_everything"], (limits.rate,))
    yield Execute(CATALOGUE["bump"])
    yield WAKE
    return (yield from self.catalogue.controls())


def write_settings(self: Context, document: Document) -> Flow[Written]:
    """Write the settings of the store, inside an operation: see core/store_settings.py."""
    written = yield from write_documents(self, SETTINGS, [document])
    yield Execute(CATALOGUE["bump"])
    return written


@writes
def cancel(
    self: Context, task_ids: Sequence[str], *, among: frozenset[State] | None = None
) -> Flow[list[Cancelled]]:
    checked_all(task_ids)
    now = self.clock()
    found = yield from standing(task_ids)
    sources = sources_of(Verb.CANCEL, among)
    accounts = Accounts()
    answers: dict[str, Cancelled] = {}
    for task in found:
        state = State.of(task.state)
        held = state is State.EXECUTING
        allowed = state in sources
        if allowed:
            yield from apply_move(task, CANCEL, now, accounts)
        worker_id = task.worker_id if held else None
        answers[task.task_id] = Cancelled(task.task_id, allowed, state, worker_id)
    if accounts.ended:
        yield from dependents.release_dependents(accounts, now)
    yield from accounts.post(now)
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
    now = self.clock()
    found = yield from standing(task_ids)
    sources = sources_of(Verb.REPLAY, among)
    move = machine.replay(reset_retry_count=reset_retry_count, level=level)
    accounts = Accounts()
    answers: dict[str, Replayed] = {}
    for task in found:
        state = State.of(task.state)
        allowed = state in sources
        if allowed:
            yield from apply_move(task, move, now, accounts)
        answers[task.task_id] = Replayed(task.task_id, allowed, state)
    yield from accounts.post(now)
    replayed = json.dumps([answer.task_id for answer in answers.values() if answer.applied])
    if replayed != "[]":
        yield Execute(ENDS["cut_loose"], (replayed,))
        yield Execute(SQL["take_keys_again"], (replayed,))
        yield WAKE
    return [
        answers.get(task_id) or Replayed(task_id, applied=False, state=None) for task_id in task_ids
    ]
