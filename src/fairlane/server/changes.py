"""Changing tasks: one by its id, or what a filter admits, for as long as a request may take."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from fairlane.core.filters import Filter
from fairlane.core.flow import Op
from fairlane.core.machine import TRANSITIONS, Verb
from fairlane.core.model import Swept
from fairlane.core.priority import level_of
from fairlane.core.states import State
from fairlane.server.answers import Answer
from fairlane.server.errors import NotNow, TaskNotFound
from fairlane.server.services import Services
from fairlane.server.tasks import task_id_of
from fairlane.wire.changes import Change, ReplayedView, SweptView

SWEEP_SECONDS: Final = 2.0
"""After so long the client is told where to go on."""


class Terms(Protocol):
    """How tasks are made ready again."""

    @property
    def reset_retry_count(self) -> bool: ...
    @property
    def new_priority(self) -> str | int | None: ...


def level(terms: Terms) -> int | None:
    """The level that replayed tasks get, None for the one they have."""
    return None if terms.new_priority is None else level_of(terms.new_priority)


def applied(answer: Change, verb: Verb, among: frozenset[State] | None = None) -> State:
    """The state that a task was in before it was changed. Raises what kept it from that."""
    if answer.state is None:
        raise TaskNotFound
    if not answer.applied:
        allowed = TRANSITIONS[verb].sources if among is None else among
        raise NotNow(
            f"The task is {answer.state}: this is for tasks that are {', '.join(sorted(allowed))}.",
            details={"status": answer.state},
        )
    return answer.state


async def replayed(
    services: Services, given: str, terms: Terms, among: frozenset[State] | None = None
) -> Answer:
    """Make one task ready again, if it is in one of these states."""
    op = services.ops.replay(
        [task_id_of(given)],
        reset_retry_count=terms.reset_retry_count,
        level=level(terms),
        among=among,
    )
    (answer,) = await services.run(op)
    before = applied(answer, Verb.REPLAY, among)
    return Answer(ReplayedView(answer.task_id, State.QUEUED, before))


async def swept(
    services: Services,
    chosen: Filter,
    cursor: str | None,
    apply: Callable[[Filter, str | None], Op[Swept]],
) -> Answer:
    """Change what a filter admits, batch by batch, until all is done or time is up."""
    return await batched(services, cursor, lambda cursor: services.run(apply(chosen, cursor)))


async def batched(
    services: Services, cursor: str | None, change: Callable[[str | None], Awaitable[Swept]]
) -> Answer:
    """Change batches, each from where the one before it ended, until all is done or time is up."""
    matched = changed = 0
    deadline = time.monotonic() + SWEEP_SECONDS
    while True:
        found = await change(cursor)
        matched += found.matched
        changed += found.applied
        cursor = found.cursor
        if cursor is None or services.stopping.is_set() or time.monotonic() > deadline:
            return Answer(SweptView(matched=matched, applied=changed, next_cursor=cursor))
