"""Workers per token: nobody makes every look at the store slow."""

from __future__ import annotations

import pytest

from fairlane.core import limits
from tests.server.kit import Api, refused, told
from tests.server.security.kit import bearer, new_token

REGISTER = "/internal/workers/register"


async def test_a_token_has_only_so_many(served: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WORKERS", 2)
    monkeypatch.setattr(limits, "WORKERS_DEAD", 3)
    _, secret = await new_token(served.world, "worker")
    _, other = await new_token(served.world, "worker")
    me, them = bearer(secret), bearer(other)
    first = told(await served.ask("POST", REGISTER, {}, **me), 200)["worker_id"]
    told(await served.ask("POST", REGISTER, {}, **me), 200)
    refused(await served.ask("POST", REGISTER, {}, **me), 429, "too_many_workers")
    told(await served.ask("POST", REGISTER, {}, **them), 200)
    # Who is registered may register again.
    again = told(await served.ask("POST", REGISTER, {"worker_id": first}, **me), 200)
    assert again["worker_id"] == first
    told(await served.ask("POST", f"/internal/workers/{first}/deregister", {}, **me), 200)
    told(await served.ask("POST", REGISTER, {}, **me), 200)


async def test_dead_ones_count_until_they_are_pruned(
    served: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WORKERS", 3)
    monkeypatch.setattr(limits, "WORKERS_DEAD", 3)
    _, secret = await new_token(served.world, "worker")
    me = bearer(secret)
    for _ in range(3):
        told(await served.ask("POST", REGISTER, {}, **me), 200)
    workers = [each.worker_id for each in await served.world.run(served.world.ops.workers())]
    await served.world.advance(3_600)
    await served.world.run(served.world.ops.bury(workers))
    refused(await served.ask("POST", REGISTER, {}, **me), 429, "too_many_workers")
