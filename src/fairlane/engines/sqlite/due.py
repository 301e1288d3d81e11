"""move_due: tasks whose time has come are queued, and tasks whose time is over end."""

from __future__ import annotations

import json
from typing import NamedTuple

from fairlane.core import limits
from fairlane.core.flow import Flow, writes
from fairlane.core.machine import DUE, EXPIRE, Clears, Place, Verb, allows
from fairlane.core.model import Due
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import State
from fairlane.core.streams import Head
from fairlane.core.tally import keys_of
from fairlane.engines.files import statements
from fairlane.engines.sqlite import dependents
from fairlane.engines.sqlite.accounting import Accounts, Group
from fairlane.engines.sqlite.calls import WAKE, Execute
from fairlane.engines.sqlite.claim_order import Left, first_streams, merge
from fairlane.engines.sqlite.context import Context
from fairlane.engines.sqlite.moves import TaskRow, apply_move, standing_by_number

SQL = statements(__package__, "due")


class Chores(NamedTuple):
    """What is next: when a task is due, when one expires, and whether parents have ended."""

    due_at: int | None
    expires_at: int | None
    parents_ended: bool


class Choice(NamedTuple):
    """The due tasks that a claim chooses from: those of the lanes that it may take, and of lanes of
    limited types no more than is left for them."""

    lanes: tuple[int, ...]
    left: dict[int, Left]


class Done(NamedTuple):
    """What chores were done, and which are left. `next_due_at`: of the tasks that are not due."""

    queued: int
    more_due: bool
    more_expired: bool
    more_dependents: bool
    next_due_at: int | None

    def next_in(self, now: int) -> float | None:
        """Return the seconds until the next task is due."""
        return None if self.next_due_at is None else (self.next_due_at - now) / MICROSECONDS


@writes
def move_due(self: Context) -> Flow[Due]:
    now = self.clock()
    (chores,) = yield Execute(SQL["chores"])
    accounts = Accounts()
    done = yield from do_chores(self, Chores._make(chores), None, now, accounts)
    yield from accounts.post(now)
    if done.queued:
        yield WAKE
    return Due(done.more_due or done.more_expired or done.more_dependents, done.next_in(now))


def do_chores(
    self: Context, chores: Chores, choice: Choice | None, now: int, accounts: Accounts
) -> Flow[Done]:
    """Do the first part of a claim: what waits for its time, or for a parent, moves on.

    `choice`: what to queue if more tasks are due than fit a batch. None: those that were due first.
    """
    queued, more_due, next_due_at = 0, False, chores.due_at
    if chores.due_at is not None and chores.due_at <= now:
        ((more_due,),) = yield Execute(SQL["more_due"], (now, limits.BATCH))
        if more_due and choice is not None:
            due = yield from _first_due(self, choice, now)
            more_due = len(due) == limits.BATCH
        else:
            due = (yield Execute(SQL["due"], (now, limits.BATCH))).fetchall()
        yield from _queue([TaskRow._make((*row, None)) for row in due], now, accounts)
        queued = len(due)
        ((next_due_at,),) = yield Execute(SQL["next_due"], (now,))
    more_expired = False
    if chores.expires_at is not None and chores.expires_at <= now:
        more_expired = yield from _expire(now, accounts)
    more_dependents = False
    if chores.parents_ended or accounts.ended:
        more_dependents = yield from dependents.release_dependents(accounts, now)
    return Done(queued, bool(more_due), more_expired, more_dependents, next_due_at)


def _first_due(self: Context, choice: Choice, now: int) -> Flow[list[tuple[object, ...]]]:
    """Return the due tasks that come first among those that a claim may take."""
    lanes = {lane for lane in choice.lanes if lane not in choice.left or choice.left[lane].most}
    heads = [Head._make(row) for row in (yield Execute(SQL["due_heads"], (now,)))]
    heads = [head for head in heads if head.lane in lanes]
    streams = first_streams(self, heads, choice.left, limits.BATCH, now)
    statement = SQL["due_stream"]
    picked = yield from merge(self, streams, now, choice.left, limits.BATCH, statement, (now,))
    found: list[tuple[object, ...]] = []
    for stream, count in picked.items():
        found += yield Execute(SQL["due_of_stream"], (*stream, now, count))
    return found


def _queue(tasks: list[TaskRow], now: int, accounts: Accounts) -> Flow[None]:
    """Queue due tasks, all at once: a million may be due in the same second."""
    assert (DUE.place, DUE.clears) == (Place.KEEP, Clears.NOTHING), DUE  # written out below
    numbers = json.dumps([task.number for task in tasks])
    yield Execute(SQL["queue"], (now, numbers))
    yield Execute(SQL["unwait"], (numbers,))
    groups: dict[tuple[int, int, int], Group] = {}
    for task in tasks:
        assert allows(DUE.verb, State.of(task.state)), task
        group = groups.setdefault((task.lane, task.level, task.state), Group())
        group.task_ids.append(task.task_id)
        group.attempts.append(task.attempt)
    for (lane, level, state), group in groups.items():
        accounts.mention(group.passage(DUE.verb, None, lane, level))
        for key in keys_of(DUE, lane, level, state):
            accounts.count(key, len(group.task_ids))


def _expire(now: int, accounts: Accounts) -> Flow[bool]:
    """End tasks whose time is over; True when there may be more of them than fit a batch."""
    expiring = (yield Execute(SQL["expiring"], (now, limits.BATCH))).fetchall()
    for entry in expiring:
        yield Execute(SQL["drop_expiry"], entry)
        task = yield from standing_by_number(entry[1])
        if task is not None and allows(Verb.EXPIRE, State.of(task.state)):
            yield from apply_move(task, EXPIRE, now, accounts)
    return len(expiring) == limits.BATCH
