"""What an application provides at its start, for as long as a worker works."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

from fairlane.core.errors import InvalidHandler
from fairlane.runtime.task import TaskFunction

Lifespan = Callable[[], AbstractAsyncContextManager[Mapping[str, Any] | None]]


async def provided(
    lifespans: Iterable[Lifespan], tasks: Iterable[TaskFunction[..., Any]], stack: AsyncExitStack
) -> dict[str, Any]:
    """What start-up hooks provide until the stack is left. Raises InvalidHandler when a task wants
    what none of them does."""
    shared: dict[str, Any] = {}
    for lifespan in lifespans:
        given = await stack.enter_async_context(lifespan())
        if given is not None:
            shared.update(given)
    for task in tasks:
        missing = set(task.arguments.shared.values()) - set(shared)
        if missing:
            raise InvalidHandler(
                f"{task.name} wants {', '.join(sorted(missing))}, which no lifespan provides."
            )
    return shared
