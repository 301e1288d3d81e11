"""Who may act as a worker, and what a worker gets to see of what is sealed."""

from __future__ import annotations

from pathlib import Path

from fairlane import engines
from fairlane.core.sealing import new_key
from fairlane.core.states import State
from fairlane.core.tokens import issued
from fairlane.server.auth import ANYONE, Identity
from fairlane.server.workers import new_worker_id
from tests.conftest import Servers
from tests.fixtures.stores import World, opened
from tests.server.kit import Api, refused, serving, told
from tests.server.workers import WORKERS, registered


async def bearer(api: Api, scope: str = "worker") -> dict[str, str]:
    new, secret = issued(scope, [scope])
    await api.world.run(api.world.ops.put_token(new))
    return {"authorization": f"Bearer {secret}"}


async def test_an_id_works_with_its_own_token_alone(api: Api) -> None:
    mine, other, reader = await bearer(api), await bearer(api), await bearer(api, "read")
    await api.world.submit()
    answer = await api.ask("POST", f"{WORKERS}/register", {}, **mine)
    worker_id = told(answer, 200)["worker_id"]
    for call in ("poll", "heartbeat", "deregister"):
        path = f"{WORKERS}/{worker_id}/{call}"
        refused(await api.ask("POST", path, {}, **other), 409, "worker_gone")
        refused(await api.ask("POST", path, {}, **reader), 403, "forbidden")
        refused(await api.ask("POST", path, {}), 401, "unauthorized")
    answer = await api.ask("POST", f"{WORKERS}/{worker_id}/poll", {}, **mine)
    assert len(told(answer, 200)["tasks"]) == 1


def test_ids_are_random_and_look_like_others() -> None:
    owners = [ANYONE, Identity("ci", "a"), Identity("ci", "b")]
    ids = {new_worker_id(owner) for owner in owners for _ in range(100)}
    assert len(ids) == 300
    assert {(len(each), each[14], each[19] in "89ab") for each in ids} == {(36, "8", True)}


async def test_a_server_with_the_key_hands_out_what_is_in_it(
    servers: Servers, tmp_path: Path
) -> None:
    keys = [new_key()]
    async with (
        opened("sqlite-file", servers, tmp_path, encryption_keys=keys) as world,
        serving(world) as api,
    ):
        task_id = await api.submit(parameters={"secret": 1})
        worker = await registered(api)
        assert [task["parameters"] for task in await worker.poll()] == [{"secret": 1}]
        told(await worker.result(task_id, result={"secret": 2}), 200)
        locked = World(engines.open(world.url), world.url, {})
        stored = await locked.task(task_id)
        await locked.close()
        assert stored.result is not None
        assert b"secret" not in stored.result


async def test_a_server_without_the_key_hands_out_nothing(servers: Servers, tmp_path: Path) -> None:
    async with opened("sqlite-file", servers, tmp_path, encryption_keys=[new_key()]) as world:
        sealed = await world.submit()
        locked = World(engines.open(world.url), world.url, {})
        async with serving(locked) as api:
            worker = await registered(api)
            assert await worker.poll() == []
            task = await world.task(sealed)
            assert (task.status, task.retry_count) == (State.SCHEDULED, 0)
            plain = await locked.submit()
            await locked.advance(61)
            assert [task["task_id"] for task in await worker.poll(2)] == [plain]
        await locked.close()
