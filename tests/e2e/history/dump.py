"""A store as it stands at the end: through the API, past it, and what its journal told."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import urlsplit

import msgspec
import psycopg
from redis import Redis

from fairlane import Fairlane, State
from fairlane.core import limits
from fairlane.core.backend import Backend
from fairlane.core.errors import StoreError
from fairlane.core.flow import Flow, reads
from fairlane.core.ids import unpack
from fairlane.core.model import Event, Task, WorkerStatus
from fairlane.core.tally import census
from fairlane.engines.redis.record import unpacked
from fairlane.engines.sqlite.driver import Execute
from tests.e2e.history.holding import Spell
from tests.fixtures.counters import tallies

Rows = tuple[tuple[str, State | None], ...]


class Dump(msgspec.Struct, frozen=True):
    """What is known of a store. `rows`: every task with its state, straight out of its tables or
    keys; `effects`: how often handlers' own transactions left their mark, by task; `spells`: what
    workers held meanwhile."""

    tasks: Mapping[str, Task]
    rows: Rows
    counted: Mapping[State, int]
    alive: frozenset[str]
    events: tuple[Event, ...] = ()
    effects: Mapping[str, int] | None = None
    spells: tuple[Spell, ...] = ()


class Journal:
    """Everything that a store tells, from its beginning: it does not keep it for ever."""

    POLL_SECONDS = 0.2

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._cursor: str | None = None
        self._events: list[Event] = []
        self.rewinds = False
        """Whether the store may go back in time. Then its journal repeats what happened since."""
        self._turn = asyncio.Lock()

    async def follow(self) -> None:
        """Read along, until cancelled; a store that is away is waited for."""
        while True:
            with suppress(StoreError):
                await self._catch_up()
            await asyncio.sleep(self.POLL_SECONDS)

    async def events(self) -> tuple[Event, ...]:
        """All of it so far. What was read before a store went back in time may be undone: that of
        such a store is read from its beginning."""
        if self.rewinds:
            async with self._turn:
                self._cursor = None
                self._events.clear()
        await self._catch_up()
        return tuple(self._events)

    async def _catch_up(self) -> None:
        async with self._turn:
            while True:
                news = await self._backend.run(self._backend.ops.events(self._cursor, limits.PAGE))
                if news.reset:
                    assert self.rewinds, "the journal was read too seldom"
                    self._events.clear()
                self._events += news.events
                self._cursor = news.cursor
                if not news.events:
                    return


async def dump(
    app: Fairlane,
    journal: Journal,
    effects: str | None = None,
    spells: tuple[Spell, ...] = (),
) -> Dump:
    """The store as it stands. `effects`: a table that handlers wrote task ids into."""
    ops = app.backend.ops
    tasks: dict[str, Task] = {}
    cursor: str | None = None
    while True:
        page = await app.list(limit=limits.PAGE, cursor=cursor)
        tasks.update((task.task_id, task.stored) for task in page.tasks)
        if (cursor := page.next_cursor) is None:
            break
    workers = await app.run(ops.workers())
    return Dump(
        tasks=tasks,
        rows=await rows(app.backend, app.url),
        counted=census(await app.run(tallies(ops))),
        alive=frozenset(
            worker.worker_id
            for worker in workers
            if worker.status is not WorkerStatus.DEAD and not worker.lost
        ),
        events=await journal.events(),
        effects=None if effects is None else await _effects(app.backend, app.url, effects),
        spells=spells,
    )


async def rows(backend: Backend, url: str) -> Rows:
    """Every task with its state, read past Fairlane. One that is in two places is there twice, one
    that is in none has no state."""
    match urlsplit(url).scheme:
        case "sqlite":
            found = await backend.run(_selected(_PLACES.format(schema="", key="number")))
        case "redis" | "unix":
            return _redis_rows(url)
        case _:
            with psycopg.connect(url) as connection:
                select = _PLACES.format(schema="fairlane.", key="task_id")
                found = connection.execute(select.encode()).fetchall()
    return tuple(
        (str(task_id), None if state is None else State.of(state)) for task_id, state in found
    )


# A task's state is the table its other row is in.
_PLACES = f"""
SELECT content.task_id, place.state
FROM {{schema}}content AS content LEFT JOIN (
    SELECT {{key}} AS place_of, state FROM {{schema}}waiting
    UNION ALL SELECT {{key}}, {State.QUEUED.code} FROM {{schema}}ready
    UNION ALL SELECT {{key}}, {State.EXECUTING.code} FROM {{schema}}held
    UNION ALL SELECT {{key}}, state FROM {{schema}}outcome
) AS place ON place.place_of = content.{{key}}
"""


@reads
def _selected(select: str) -> Flow[list[tuple[str, int | None]]]:
    found = yield Execute(select)
    return list(found.fetchall())


def _redis_rows(url: str) -> Rows:
    with Redis.from_url(url) as client:
        tasks, live, finished = (
            client.hgetall(b"{fairlane}:" + name) for name in (b"tasks", b"live", b"finished")
        )
    both = [(each, live[each]) for each in live.keys() & finished.keys()]
    once = [(each, finished.get(each) or live.get(each) or tasks[each]) for each in tasks]
    return tuple(
        (unpack(task_id)[0], State.of(unpacked(record).state)) for task_id, record in once + both
    )


async def _effects(backend: Backend, url: str, table: str) -> Mapping[str, int]:
    select = f"SELECT task_id, 0 FROM {table}"
    if urlsplit(url).scheme == "sqlite":
        found = await backend.run(_selected(select))
    else:
        with psycopg.connect(url) as connection:
            found = connection.execute(select.encode()).fetchall()
    return Counter(task_id for task_id, _ in found)
