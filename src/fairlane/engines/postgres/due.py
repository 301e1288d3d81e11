"""move_due: tasks whose time has come are queued, and tasks whose time is over end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairlane.core import limits
from fairlane.core.flow import Flow, writes
from fairlane.core.machine import DUE, EXPIRE, Place, sources_of
from fairlane.core.model import Due
from fairlane.core.priority import MICROSECONDS
from fairlane.core.records import stored_error
from fairlane.core.states import WAITING
from fairlane.engines.files import fill, part
from fairlane.engines.postgres.calls import BEGIN, COMMIT, WAKE, Query
from fairlane.engines.postgres.claim_order import Arm
from fairlane.engines.postgres.context import Context
from fairlane.engines.postgres.dependents import release_dependents, release_left_over
from fairlane.engines.postgres.moves import Ended
from fairlane.engines.postgres.statements import load

SQL = load("due")

_RELEASE_FIRST = fill(SQL["release_due"], pick=part(SQL["first_due"], "pick"))


class Chores(NamedTuple):
    """Whether tasks are due or expired, or dependents are left over."""

    due: bool
    expired: bool
    left_over: bool


class Done(NamedTuple):
    """How many tasks were queued, and what may be left."""

    queued: int
    more_due: bool
    more_expired: bool
    more_dependents: bool


class Choice(NamedTuple):
    """The due tasks that a claim chooses from: up to `most` of each arm.

    `limited`: the lanes of limited types, each with the number of its type, and with how many tasks
    the claim may take of that. It takes up to `slots` of all limited types together.
    """

    arms: list[Arm]
    most: int
    slots: int
    limited: list[tuple[int, int, int]]


@writes
def move_due(self: Context) -> Flow[Due]:
    ((chores),) = yield Query(SQL["chores"])
    done = yield from do_chores(Chores._make(chores))
    if done.queued:
        yield WAKE
    ((next_in,),) = yield Query(SQL["next_due_in"])
    more = done.more_due or done.more_expired or done.more_dependents
    return Due(more, None if next_in is None else next_in / MICROSECONDS)


def do_chores(chores: Chores, choice: Choice | None = None) -> Flow[Done]:
    """Do the first part of a claim: what waits for its time, or for a parent, moves on.

    `choice`: what to queue if more tasks are due than fit a batch. None: those that were due first.
    """
    queued, more_due = (yield from _release_due(choice)) if chores.due else (0, False)
    more_expired = chores.expired and (yield from _expire())
    more_dependents = chores.left_over and (yield from _release_left_over())
    return Done(queued, more_due, more_expired, more_dependents)


def _release_due(choice: Choice | None) -> Flow[tuple[int, bool]]:
    """Queue tasks that are due. Return their number, and whether there may be more."""
    assert DUE.place is Place.KEEP, DUE  # the statement writes it out
    ((flood,),) = yield Query(SQL["more_due"], (limits.BATCH,))
    values = (limits.BATCH, DUE.verb.value)
    if flood and choice is not None:
        columns = (*_columns(choice.arms, 5), *_columns(choice.limited, 3))
        chosen = (choice.most, choice.slots, *columns)
        ((released,),) = yield Query(_RELEASE_FIRST, (*values, *chosen))
    else:
        ((released,),) = yield Query(SQL["release_due"], values)
    return released, bool(flood) and released > 0


def _columns(rows: Sequence[tuple[int, ...]], width: int) -> list[list[int]]:
    return [list(column) for column in zip(*rows, strict=True)] or [[]] * width


def _expire() -> Flow[bool]:
    """End tasks that have expired. Return whether there may be more than fit a batch."""
    assert sources_of(EXPIRE.verb) == WAITING, EXPIRE  # where the statement looks for them
    values = (stored_error(EXPIRE.error), EXPIRE.label, EXPIRE.verb.value, EXPIRE.state.code)
    yield BEGIN
    rows = yield Query(SQL["expire"], (limits.BATCH, *values))
    ended = [
        Ended(task_id, EXPIRE.state, bound) for task_id, linked, bound in rows if linked or bound
    ]
    released = yield from release_dependents(ended)
    yield COMMIT
    if released:
        yield WAKE
    return len(rows) == limits.BATCH


def _release_left_over() -> Flow[bool]:
    """Release dependents that are left over. Return whether there may be more than fit a batch."""
    resolved = yield from release_left_over()
    if resolved.released:
        yield WAKE
    return resolved.more
