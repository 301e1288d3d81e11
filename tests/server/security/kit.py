"""A scene in which every operation would succeed, if only one were let in; and tokens for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from fairlane.core.definitions import Definition
from fairlane.core.filters import EVERYTHING
from fairlane.core.ids import new_id, numbered
from fairlane.core.model import Claimed, Membership, NewWorker, TaskError
from fairlane.core.outcomes import Failed
from fairlane.core.ownership import Bounds
from fairlane.core.recurrence import cron
from fairlane.core.schedules import new_schedule
from fairlane.core.submission import new_task
from fairlane.core.tokens import Scope, allows, digest_of, issued
from fairlane.dashboard.assets import assets
from fairlane.server.auth import ANYONE, Identity
from fairlane.server.config import ServerConfig
from fairlane.server.operations import Operation
from fairlane.server.workers import new_worker_id
from tests.conftest import Servers
from tests.fixtures.stores import World, opened
from tests.server.kit import CALM, Api, serving

EXPIRED, REVOKED, BOTH = "expired", "revoked", "worker-submit"
WRONG = "fl_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
SCHEDULE = "nightly"
HOURLY: dict[str, Any] = {"every_seconds": 3600.0, "task": {"task_type": "intruder"}}
DAY = {"since": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z"}


async def new_token(world: World, *scopes: str, **options: Any) -> tuple[str, str]:
    """A token that is in the store: its id and its secret."""
    token, secret = issued(options.pop("name", "-".join(scopes)), scopes, **options)
    await world.run(world.ops.put_token(token))
    return token.token_id, secret


async def all_tokens(world: World) -> dict[str, str]:
    """A secret for each scope, one for two of them, and two that no longer count."""
    secrets = {scope.value: (await new_token(world, scope))[1] for scope in Scope}
    _, secrets[BOTH] = await new_token(world, Scope.WORKER, Scope.SUBMIT, name=BOTH)
    _, secrets[EXPIRED] = await new_token(world, *Scope, lifetime=1.0, name=EXPIRED)
    await world.advance(2.0)
    token_id, secrets[REVOKED] = await new_token(world, *Scope, name=REVOKED)
    await world.run(world.ops.drop_token(token_id))
    return secrets


class Scene(NamedTuple):
    """What the operations of the table can be tried on."""

    waiting: str
    """A task."""
    held: str
    """A task that a worker holds."""
    done: str
    dead: str
    """Tasks that have ended, well and badly."""
    worker: str

    def workflow(self, operation: Operation) -> str:
        """A workflow with which an operation would succeed: one that has ended is deleted."""
        return workflow_of(self.done if operation.method == "DELETE" else self.waiting)

    def path(self, operation: Operation) -> str:
        """A path on which an operation would succeed."""
        tasks = {
            ("DELETE", "/api/tasks/{task_id}"): self.done,
            ("POST", "/api/tasks/{task_id}/retry"): self.dead,
            ("POST", "/api/v1/tasks/{task_id}/replay"): self.dead,
            ("POST", "/api/v1/tasks/{task_id}/retry"): self.dead,
            ("POST", "/api/v1/dlq/{task_id}/replay"): self.dead,
        }
        task_id = tasks.get((operation.method, operation.path), self.waiting)
        queries = {
            ("DELETE", "/api/tasks"): "?olderThan=2100-01-01T00:00:00Z",
            ("DELETE", "/api/v1/dlq"): "?all=true",
        }
        path = operation.path.replace("{task_id}", task_id).replace("{worker_id}", self.worker)
        path = path.replace("{queue}", "default").replace("{type}", "work")
        path = path.replace("{schedule_id}", SCHEDULE)
        path = path.replace("{workflow_id}", self.workflow(operation))
        path = path.replace("{version}", assets().version).replace("{path:path}", "main.js")
        return path + queries.get((operation.method, operation.path), "")

    def body(self, operation: Operation) -> Any:
        """A body with which an operation would succeed."""
        sweep = {"task_ids": [self.waiting, self.dead, self.done]}
        bodies: dict[str, Any] = {
            "/api/v1/tasks": {"task_type": "intruder", "parameters": {}},
            "/api/v1/tasks/batch": {"tasks": [{"task_type": "intruder", "parameters": {}}]},
            "/api/v1/workflows": {"tasks": [{"node": "a", "task_type": "intruder"}]},
            "/api/tasks": {"type": "intruder", "payload": {}},
            "/api/tasks/rate-limit": {"tasksPerSecond": 7},
            "/api/v1/tasks/cancel": sweep,
            "/api/v1/tasks/replay": sweep,
            "/api/v1/tasks/retry": sweep,
            "/api/v1/tasks/delete": sweep,
            "/api/v1/dlq/replay": {"all": True},
            "/api/v1/types/{type}": {"paused": True},
            "/api/v1/control": {"paused": True},
            "/internal/workers/definitions": {"definitions": [{"type": "intruder"}]},
            "/internal/workers/completions": {"types": ["intruder"]},
            "/internal/workers/{worker_id}/result": {"task_id": self.held, "status": "completed"},
            "/internal/workers/{worker_id}/start": {"task_id": self.held},
            "/internal/workers/{worker_id}/claim": {"request_id": "r"},
            "/internal/workers/{worker_id}/results": {"results": []},
            "/internal/workers/{worker_id}/starts": {"starts": []},
            "/internal/workers/{worker_id}/reports": {"reports": []},
            "/internal/workers/{worker_id}/disown": {"runs": []},
            "/api/v1/tasks/lookup": {"task_ids": [self.held]},
            "/internal/workers/{worker_id}/progress": {
                "task_id": self.held,
                "progress_percent": 50,
            },
            "/auth/session": {"token": WRONG},
            "/api/v1/schedules/preview": {"cron": "@daily"},
            "/api/v1/schedules/{schedule_id}/backfill": DAY,
            "/internal/store/schedules": {"schedules": [{"schedule_id": "intruder", **HOURLY}]},
            "/internal/workers/schedules": {
                "owner": "intruder",
                "schedules": [{"schedule_id": "intruder", **HOURLY}],
            },
            "/api/v1/schedules": {"schedule_id": "intruder", **HOURLY},
            "/api/v1/schedules/{schedule_id}": HOURLY,
        }
        return None if operation.body is None else bodies.get(operation.path, {})


async def scene(world: World, owner: Identity = ANYONE, whose: Bounds | None = None) -> Scene:
    """Tasks in several states, and a worker, of whoever has this token, that holds one. And a
    schedule.

    `whose`: they are within the bounds of a token, and in a queue that others do not use.
    """
    queue = "default" if whose is None else min(whose.queues or [whose.subject])
    queues = frozenset({queue})
    worker = new_worker_id(owner)
    await world.run(world.ops.register(NewWorker(worker, queues=queues)))
    await world.run(world.ops.publish([Definition(type="work")]))
    nightly = new_schedule(SCHEDULE, cron("30 2 * * *"), new_task("work"))
    await world.run(world.ops.put_schedules([nightly]))

    async def submit(**options: Any) -> str:
        task = new_task("work", queue=queue, **options)
        (task_id,) = await world.submit_all([task if whose is None else whose.own_task(task)])
        return task_id

    async def claim() -> Claimed:
        return await world.claim_one(worker, queues=queues)

    membership = Membership("only", 1)
    done = new_id()
    await submit(task_id=done, workflow_id=workflow_of(done), membership=membership)
    await world.settle(await claim())
    dead = await submit(max_retries=0)
    await world.settle(await claim(), Failed(TaskError("broken", "ValueError")))
    held = await submit()
    await claim()
    waiting = new_id()
    await submit(task_id=waiting, workflow_id=workflow_of(waiting), membership=membership)
    return Scene(waiting, held, done, dead, worker)


def workflow_of(task_id: str) -> str:
    """The id of the workflow whose first task this is."""
    return numbered(task_id, -1)


async def snapshot(world: World) -> Any:
    """All that a request could change."""
    page = await world.run(world.ops.page(EVERYTHING, 100))
    workers = await world.run(world.ops.workers())
    return (
        sorted((task.task_id, task.status, task.progress) for task in page.tasks),
        sorted((worker.worker_id, worker.status) for worker in workers),
        (await world.run(world.ops.controls()), await world.run(world.ops.definitions())),
        (await world.run(world.ops.schedule_page())).schedules,
        [token.token_id for token in await world.run(world.ops.tokens())],
        await audit_log(world),
    )


async def audit_log(world: World) -> list[tuple[str, str, str, str]]:
    """Who did what to what from where, the oldest first."""
    page = await world.run(world.ops.audit(1_000))
    entries = [(each.actor, each.action, each.subject, each.address) for each in page.entries]
    return entries[::-1]


class Guarded(NamedTuple):
    """A server that asks for tokens."""

    api: Api
    scene: Scene
    secrets: dict[str, str]


@asynccontextmanager
async def guarded(
    servers: Servers, folder: Path, kind: str = "sqlite-memory", config: ServerConfig = CALM
) -> AsyncIterator[Guarded]:
    """A server with a scene and with tokens."""
    async with opened(kind, servers, folder) as world:
        secrets = await all_tokens(world)
        token = await world.run(world.ops.token(digest_of(secrets["worker"])))
        assert token is not None
        found = await scene(world, Identity(token.name, token.token_id))
        async with serving(world, config) as api:
            yield Guarded(api, found, secrets)


def bearer(secret: str) -> dict[str, str]:
    """The header that brings a secret along."""
    return {"authorization": f"Bearer {secret}"}


def needing_a_scope(operations: Iterable[Operation]) -> list[Operation]:
    return [operation for operation in operations if operation.scopes]


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """What a server remembers of tokens is soon forgotten."""
    async with asyncio.timeout(10):
        while not await condition():  # noqa: ASYNC110 (another process may change it)
            await asyncio.sleep(0.05)


def admits(operation: Operation, *scopes: Scope) -> bool:
    """Whether a token with these scopes may do it."""
    either = any(allows(scopes, each) for each in operation.scopes)
    return either and all(allows(scopes, each) for each in operation.besides)


def name_of(operation: Operation) -> str:
    """What people call it."""
    return f"{operation.method} {operation.path}"
