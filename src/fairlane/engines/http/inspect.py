"""get, find, page, stats, workers and the rest: reading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from fairlane.core import limits
from fairlane.core.analysis import Analysis
from fairlane.core.backend import Durability
from fairlane.core.definitions import DefinitionPage, Published
from fairlane.core.errors import AccessDenied, InvalidFilter, NotAFairlaneStore
from fairlane.core.facts import Sample
from fairlane.core.filters import Filter, Found, Page, Total
from fairlane.core.flow import Flow, reads
from fairlane.core.ids import checked, checked_all
from fairlane.core.lanes import Controls
from fairlane.core.model import Task, Worker
from fairlane.core.records import head_of
from fairlane.core.stats import Stats
from fairlane.core.store_settings import StoreSettings
from fairlane.core.why import Reason
from fairlane.engines.http import decode
from fairlane.engines.http.calls import Call, get, part, post
from fairlane.engines.http.calls import decode as decode_reply
from fairlane.engines.http.errors import code_of
from fairlane.engines.http.filters import admits_nothing, query_of
from fairlane.http_client import Reply
from fairlane.wire.definitions import DefinitionList, DefinitionView
from fairlane.wire.figures import AnalysisView, SampleList
from fairlane.wire.limits import ControlsView
from fairlane.wire.tasks import decode_task
from fairlane.wire.tasks_read import TaskPage, TasksFound, WhyView
from fairlane.wire.times import iso_of
from fairlane.wire.workers import WorkerList

TASKS: Final = "/api/v1/tasks"
CONTROL: Final = "/api/v1/control"
SETTINGS: Final = "/api/v1/settings"
DEFINITIONS: Final = "/api/v1/definitions"
NOT_FOUND: Final = 404
_VERSION: Final = 1
"""Of the API."""


class _Session(msgspec.Struct, frozen=True):
    required: bool
    name: str | None


class _Ready(msgspec.Struct, frozen=True):
    durability: Durability | None = None
    """Not told to a bound token."""


@reads
def get_tasks(_: object, task_ids: Sequence[str]) -> Flow[list[Task | None]]:
    return (yield from _get(task_ids))


@reads
def heads(_: object, task_ids: Sequence[str]) -> Flow[list[Task | None]]:
    tasks = yield from _get(task_ids)
    return [None if task is None else head_of(task) for task in tasks]


def _get(task_ids: Sequence[str]) -> Flow[list[Task | None]]:
    checked_all(task_ids, limits.SUBMIT_BATCH)
    found: list[Task | None] = []
    while len(found) < len(task_ids):
        body = {"task_ids": task_ids[len(found) :]}
        answer = yield from post(f"{TASKS}/lookup", body, TasksFound)
        if not answer.tasks:
            raise NotAFairlaneStore("The server answers without the tasks that it was asked for.")
        found += [None if task is None else decode_task(task) for task in answer.tasks]
    return found


@reads
def page(_: object, filter: Filter, limit: int, cursor: str | None = None) -> Flow[Page]:
    return (yield from _page(filter, limit, cursor))


@reads
def find(_: object, filter: Filter, limit: int, cursor: str | None = None) -> Flow[Found]:
    found = yield from _page(filter, limit, cursor)
    return Found([task.task_id for task in found.tasks], found.next_cursor)


@reads
def total(_: object, filter: Filter) -> Flow[Total]:
    if admits_nothing(filter):
        return Total(0, exact=True)
    return (yield from get(f"{TASKS}/count", Total, query_of(filter)))


@reads
def why(_: object, task_id: str) -> Flow[list[Reason] | None]:
    checked(task_id)
    reply: Reply = yield Call("GET", f"{TASKS}/{task_id}/why")
    if code_of(reply) == "task_not_found":
        return None
    answer = decode_reply(reply, WhyView)
    return [Reason(each.code, each.message) for each in answer.reasons]


@reads
def stats(_: object) -> Flow[Stats]:
    return (yield from get("/api/v1/queue/stats", Stats))


@reads
def workers(_: object) -> Flow[list[Worker]]:
    answer = yield from get("/api/v1/workers", WorkerList)
    return [decode.worker_of(each) for each in answer.workers]


@reads
def controls(_: object) -> Flow[Controls]:
    return (yield from controls_now())


def controls_now() -> Flow[Controls]:
    """Return what is paused and limited."""
    return decode.controls_of((yield from get(CONTROL, ControlsView)))


@reads
def settings(_: object) -> Flow[StoreSettings]:
    return (yield from get(SETTINGS, StoreSettings))


@reads
def definition(_: object, type: str) -> Flow[Published | None]:
    reply: Reply = yield Call("GET", f"{DEFINITIONS}/{part(type)}")
    if reply.status == NOT_FOUND:
        return None  # there is no such type, or the server does not know definitions
    return decode_reply(reply, DefinitionView).published()


@reads
def definition_page(
    _: object, cursor: str | None = None, limit: int = limits.DEFINITION_PAGE
) -> Flow[DefinitionPage]:
    query = {"limit": limit} | ({} if cursor is None else {"cursor": cursor})
    answer = yield from get(DEFINITIONS, DefinitionList, query)
    return DefinitionPage([each.published() for each in answer.definitions], answer.next_cursor)


@reads
def dlq_analysis(_: object) -> Flow[Analysis]:
    return decode.analysis_of((yield from get("/api/v1/dlq/analysis", AnalysisView)))


@reads
def samples(_: object, since: int, limit: int) -> Flow[list[Sample]]:
    query: dict[str, Any] = {"since": iso_of(since), "limit": limit}
    answer = yield from get("/api/v1/stats/history", SampleList, query)
    return [decode.sample_of(each) for each in answer.samples]


@reads
def durability(_: object) -> Flow[Durability]:
    ready = yield from get("/readyz", _Ready)
    return ready.durability or Durability("server", {}, ())


@reads
def version(_: object) -> Flow[int]:
    return (yield from _check_access())


@reads
def verify(_: object) -> Flow[None]:
    yield from _check_access()


@reads
def migrate(_: object) -> Flow[int]:
    """Check that the server is there: it migrates its store itself."""
    return (yield from _check_access())


def _check_access() -> Flow[int]:
    """Return the version of the API. Raises AccessDenied if the server does not know our token."""
    session = yield from get("/auth/session", _Session)
    if session.required and session.name is None:
        raise AccessDenied(
            "The server requires a valid token: give it as token=…, or as FAIRLANE_TOKEN. "
            "`fairlane token create` makes one."
        )
    return _VERSION


def _page(filter: Filter, limit: int, cursor: str | None) -> Flow[Page]:
    if not 1 <= limit <= limits.PAGE:
        raise InvalidFilter(f"A page has 1 to {limits.PAGE:,} tasks, not {limit:,}.")
    if admits_nothing(filter):
        return Page([], None)
    query = {**query_of(filter), "limit": limit, **({} if cursor is None else {"cursor": cursor})}
    answer = yield from get(TASKS, TaskPage, query)
    return Page([decode_task(task) for task in answer.tasks], answer.next_cursor)
