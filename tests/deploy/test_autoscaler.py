"""The example for KEDA against a real server: it asks as KEDA does, and decides as KEDA does."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from fairlane.core.tokens import Scope
from fairlane.server.config import ServerConfig
from tests.conftest import Servers
from tests.deploy.kit import DEPLOY, documents
from tests.fixtures.stores import World, opened
from tests.server.kit import Api, serving, told
from tests.server.security.kit import new_token, until
from tests.telemetry.kit import Scraped

(SCALED,) = [
    each["spec"]
    for each in documents(DEPLOY / "kubernetes" / "keda.yaml")
    if each["kind"] == "ScaledObject"
]
DELAY = 60.0


@pytest.fixture(params=["sqlite-file", "postgres-newest", "redis"])
async def world(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path
) -> AsyncIterator[World]:
    async with opened(request.param, servers, tmp_path) as world:
        yield world


class Keda:
    """What KEDA makes of the trigger `metrics-api`, and the autoscaler of Kubernetes behind it."""

    def __init__(self, api: Api, secret: str) -> None:
        self._api = api
        self._authorization = f"Bearer {secret}"
        self._metadata: dict[str, str] = SCALED["triggers"][0]["metadata"]

    async def replicas(self) -> int:
        value = await self._value()
        if value <= float(self._metadata.get("activationTargetValue", 0)):
            return int(SCALED["minReplicaCount"])
        wanted = math.ceil(value / float(self._metadata["targetValue"]))
        return min(max(wanted, 1), int(SCALED["maxReplicaCount"]))

    async def _value(self) -> float:
        path = urlsplit(self._metadata["url"]).path
        found: Any = await self._asked(path)
        for name in self._metadata["valueLocation"].split("."):
            found = found[name]
        return float(found)

    async def _asked(self, path: str) -> Any:
        return told(await self._api.ask("GET", path, authorization=self._authorization), 200)

    async def depth(self) -> float:
        reply = await self._api.ask("GET", "/metrics", authorization=self._authorization)
        return Scraped(reply.body.decode()).sum("queue_depth")


async def test_delayed_tasks_that_come_due_wake_workers_from_none(world: World) -> None:
    """Nobody claims: there is no worker, only a server."""
    _, secret = await new_token(world, Scope.READ)
    async with serving(world, ServerConfig()) as api:
        keda = Keda(api, secret)
        ids = [await world.submit(delay_seconds=DELAY) for _ in range(101)]
        await world.submit(delay_seconds=100 * DELAY)
        assert (await keda.replicas(), await keda.depth()) == (0, 0)
        await world.advance(DELAY + 1)
        await until(lambda: _equals(keda, 2))
        assert await keda.depth() == 101
        await world.run(world.ops.cancel(ids[1:]))
        await until(lambda: _equals(keda, 1))
        await world.run(world.ops.cancel(ids[:1]))
        await until(lambda: _equals(keda, 0))


async def _equals(keda: Keda, replicas: int) -> bool:
    return await keda.replicas() == replicas
