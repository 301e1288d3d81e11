"""Workers per token: nobody makes every look at the store slow."""

from __future__ import annotations

from typing import Any

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


async def test_the_workers_of_a_token_name_only_so_much_together(
    served: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WORKERS_NAME_BYTES", 100_000)
    _, secret = await new_token(served.world, "worker")
    _, other = await new_token(served.world, "worker")
    me, them = bearer(secret), bearer(other)

    def naming(characters: int, **fields: str) -> dict[str, Any]:
        return {"types": [f"{number:0100}" for number in range(characters // 100)], **fields}

    registered = [
        told(await served.ask("POST", REGISTER, naming(30_000), **me), 200) for _ in range(3)
    ]
    worker_id = registered[-1]["worker_id"]
    reply = await served.ask("POST", REGISTER, naming(10_100), **me)
    refused(reply, 429, "too_many_workers")
    assert b"100,000 characters together: name fewer" in reply.body
    told(await served.ask("POST", REGISTER, naming(30_000), **them), 200)
    told(await served.ask("POST", REGISTER, naming(10_000), **me), 200)
    # One that registers again is counted once, and cannot name more than would fit.
    told(await served.ask("POST", REGISTER, naming(30_000, worker_id=worker_id), **me), 200)
    again = naming(30_100, worker_id=worker_id)
    refused(await served.ask("POST", REGISTER, again, **me), 429, "too_many_workers")
    # What most workers name always fits, so that they need not be counted.
    told(await served.ask("POST", REGISTER, naming(4_000, worker_id=worker_id), **me), 200)
    told(await served.ask("POST", REGISTER, naming(20_000), **me), 200)
    assert len(await served.world.run(served.world.ops.workers())) == 6
