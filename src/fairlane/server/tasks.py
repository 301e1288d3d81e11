"""Tasks as requests name them."""

from __future__ import annotations

from fairlane.client.requests import list_bounded
from fairlane.core.filters import Filter, Page
from fairlane.core.flow import perform_async
from fairlane.core.ids import is_id
from fairlane.core.model import Task
from fairlane.server.answers import Answer
from fairlane.server.errors import TaskNotFound
from fairlane.server.services import Services
from fairlane.wire.tasks import page_of


async def one_task(services: Services, task_id: str) -> Task:
    """The task with this id. Raises TaskNotFound, also for what cannot be an id."""
    (task,) = await services.run(services.ops.get([task_id_of(task_id)]))
    if task is None:
        raise TaskNotFound
    return task


def task_id_of(given: str) -> str:
    """The id of a task out of a request. Raises TaskNotFound for what cannot be one."""
    if not is_id(given):
        raise TaskNotFound
    return given


async def found_page(services: Services, chosen: Filter, limit: int, cursor: str | None) -> Page:
    """A page of tasks."""
    return await perform_async(list_bounded(services.ops, chosen, limit, cursor), services.run)


async def page(services: Services, chosen: Filter, limit: int, cursor: str | None) -> Answer:
    """An answer with a page of tasks."""
    return Answer(page_of(await found_page(services, chosen, limit, cursor)))
