"""pause, limit, cancel, replay: what operators change."""

from __future__ import annotations

from collections.abc import Sequence

from fairlane.core.flow import Flow, writes
from fairlane.core.ids import checked_all
from fairlane.core.lanes import Controls, checked_concurrency, checked_rate, checked_scope
from fairlane.core.machine import TRANSITIONS, Verb
from fairlane.core.model import Cancelled, Replayed
from fairlane.core.states import State
from fairlane.core.tally import replay_keys
from fairlane.engines.postgres.calls import BEGIN, COMMIT, WAKE, Query
from fairlane.engines.postgres.context import SQL as CATALOGUE
from fairlane.engines.postgres.context import Context
from fairlane.engines.postgres.ledger import count
from fairlane.engines.postgres.rows import array_of_ids
from fairlane.engines.postgres.statements import load

SQL = load("control")

_REPLAYABLE = sorted(state.code for state in TRANSITIONS[Verb.REPLAY].sources)


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
    yield from _change(changes)
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
) -> Flow[Controls]:
    type = checked_scope(type)
    rate = None if rate is None else checked_rate(rate)
    concurrency = None if concurrency is None else checked_concurrency(concurrency)
    changes = []
    if type is not None:
        changes.append(Query(SQL["limit_type"], (type, rate, concurrency)))
    elif rate is not None:
        changes.append(Query(SQL["rate_everything"], (rate,)))
    yield from _change(changes)
    yield WAKE
    return (yield from self.catalogue.load()).controls


def _change(changes: list[Query]) -> Flow[None]:
    """Change controls while no claim is under way: the next one goes by them."""
    yield BEGIN
    yield Query(SQL["close_gate"])
    for change in changes:  # noqa: UP028 (a list would not take the replies)
        yield change
    yield Query(CATALOGUE["bump"])
    yield COMMIT


@writes
def cancel(self: Context, task_ids: Sequence[str]) -> Flow[list[Cancelled]]:
    checked_all(task_ids)
    answers: dict[str, Cancelled] = {}
    wanted = sorted(set(task_ids))
    while wanted:
        rows = yield Query(SQL["cancel"], (array_of_ids(wanted),))
        wanted = []
        for uuid, before, worker_id, ended in rows:
            task_id = str(uuid)
            if before is not None:
                answers[task_id] = Cancelled(task_id, True, State.of(before), worker_id)  # noqa: FBT003
            elif ended is not None:
                answers[task_id] = Cancelled(task_id, applied=False, state=State.of(ended))
            else:
                wanted.append(task_id)  # on its way from one table to another: look again
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
) -> Flow[list[Replayed]]:
    checked_all(task_ids)
    wanted = sorted(set(task_ids))
    if level is not None:
        yield from _open_streams(self, wanted, level)
    answers: dict[str, Replayed] = {}
    while wanted:
        yield BEGIN
        rows = yield Query(
            SQL["replay"], (array_of_ids(wanted), _REPLAYABLE, level, reset_retry_count)
        )
        wanted = []
        keys = []
        for uuid, before, stays, lane, old_level, new_level in rows:
            task_id = str(uuid)
            if before is not None:
                answers[task_id] = Replayed(task_id, True, State.of(before))  # noqa: FBT003
                keys += replay_keys(lane, old_level, new_level, before)
            elif stays is not None:
                answers[task_id] = Replayed(task_id, applied=False, state=State.of(stays))
            else:
                wanted.append(task_id)  # on its way from one table to another: look again
        yield from count(keys)
        yield COMMIT
    if any(answer.applied for answer in answers.values()):
        yield WAKE
    return [
        answers.get(task_id) or Replayed(task_id, applied=False, state=None) for task_id in task_ids
    ]


def _open_streams(self: Context, task_ids: list[str], level: int) -> Flow[None]:
    """Claims read only streams that are known to exist."""
    streams = set()
    for (lane_id,) in (yield Query(SQL["lanes_of"], (array_of_ids(task_ids),))):
        lane = yield from self.catalogue.lane(lane_id)
        streams.add((lane.key, level))
    if missing := self.catalogue.known.missing(streams):
        yield from self.catalogue.open(missing)
