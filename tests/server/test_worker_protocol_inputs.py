"""Results of other tasks, as workers over HTTP get them: among the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fairlane import engines
from fairlane.core import limits
from fairlane.core.model import TaskError
from fairlane.core.outcomes import Completed, Failed
from fairlane.core.sealing import Key
from fairlane.core.states import State
from tests.conftest import Servers
from tests.fixtures.stores import World, opened
from tests.server.kit import Api, serving
from tests.server.workers import Worker, registered

FATAL = Failed(TaskError("sold out", "OUT_OF_STOCK", retriable=False))


async def ended(served: Api, *results: bytes | None) -> list[str]:
    """The ids of tasks that ended with these results; None: it failed."""
    world = served.world
    worker = await world.worker()
    ids = []
    for result in results:
        ids.append(await world.submit("parent"))
        task = await world.claim_one(worker)
        await world.settle(task, FATAL if result is None else Completed(result))
    return ids


def inputs(**parents: Sequence[str] | str) -> dict[str, Any]:
    """Inputs by parameter: one id, or a list of them."""
    return {
        name: {"parents": [given]} if isinstance(given, str) else {"parents": given, "many": True}
        for name, given in parents.items()
    }


async def claim(worker: Worker, slots: int = 10, request_id: str = "r1") -> list[dict[str, Any]]:
    answer = await worker.told("claim", {"request_id": request_id, "slots": slots})
    tasks: list[dict[str, Any]] = answer["tasks"]
    return tasks


async def test_they_are_among_the_parameters(served: Api) -> None:
    one, two = await ended(served, b'{"id":[7]}', b"2.50")
    whole = {**inputs(order=one, all=[two, one]), "part": {"parents": [one], "path": ["id", 0]}}
    task_id = await served.submit("child", parameters={"to": "Ada"}, inputs=whole)
    worker = await registered(served)
    (task,) = await worker.poll()
    assert task["task_id"] == task_id
    parameters = {"to": "Ada", "order": {"id": [7]}, "all": [2.5, {"id": [7]}], "part": 7}
    assert task["parameters"] == parameters
    assert "inputs" not in task, "a worker in another language need not know"
    shown = await served.get(f"/api/v1/tasks/{task_id}")
    assert (shown["parameters"], shown["depends_on"]) == ({"to": "Ada"}, [one, two])
    assert shown["inputs"] == {
        "order": {"parents": [one], "many": False, "path": []},
        "all": {"parents": [two, one], "many": True, "path": []},
        "part": {"parents": [one], "many": False, "path": ["id", 0]},
    }
    await worker.result(task_id)
    bulk = await served.submit("child", inputs=whole)
    plain = await served.submit("child")
    tasks = {each["task_id"]: each for each in await claim(worker)}
    assert tasks[bulk]["inputs"] == {
        "order": {"many": False},
        "all": {"many": True},
        "part": {"many": False},
    }
    assert tasks[plain]["inputs"] is None
    assert await claim(worker) == list(tasks.values()), "the same request again"


async def test_a_parent_that_failed_is_told(served: Api) -> None:
    good, bad = await ended(served, b"1", None)
    task_id = await served.submit(
        "child", inputs=inputs(prices=[good, bad]), on_parent_failure="continue"
    )
    (task,) = await (await registered(served)).poll()
    failed = {
        "task_id": bad,
        "state": "failed",
        "code": "OUT_OF_STOCK",
        "message": "sold out",
    }
    assert (task["task_id"], task["parameters"]) == (task_id, {"prices": [1, {"$failed": failed}]})


async def test_those_that_cannot_be_filled_fail_and_others_are_handed_out(served: Api) -> None:
    good, gone = await ended(served, b"1", b"2")
    lost = await served.submit("child", inputs=inputs(order=gone), max_retries=5)
    nowhere = await served.submit("child", inputs={"order": {"parents": [good], "path": ["lines"]}})
    fine = await served.submit("child", inputs=inputs(order=good))
    plain = await served.submit("child")
    await served.world.run(served.world.ops.delete([gone]))
    worker = await registered(served)
    assert [task["task_id"] for task in await claim(worker)] == [fine, plain]
    tasks = [await served.world.task(task_id) for task_id in (lost, nowhere)]
    assert [(task.state, task.attempt) for task in tasks] == [(State.FAILED, 1)] * 2
    messages = []
    for task in tasks:
        assert task.error is not None
        assert task.error.code == "INPUT_MISSING"
        messages.append(task.error.message)
    assert f"'order' is the result of task {gone}, which was deleted" in messages[0]
    assert f"'order' is the result of task {good}, which has no part 'lines'" in messages[1]
    assert [task["task_id"] for task in await claim(worker)] == [fine, plain], "once more"


async def test_if_nothing_is_left_it_looks_again_at_once(api: Api) -> None:
    (gone,) = await ended(api, b"1")
    await api.submit("child", inputs=inputs(order=gone))
    plain = await api.submit("child", delay_seconds=3600)
    await api.world.run(api.world.ops.delete([gone]))
    worker = await registered(api)
    answer = await worker.told("claim", {"request_id": "r1", "slots": 1})
    assert (answer["tasks"], answer["next_due_in_seconds"]) == ([], 0)
    assert (await api.world.task(plain)).state is State.SCHEDULED


async def test_one_read_serves_all_tasks_of_an_answer(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    parents = await ended(api, *[b"%d" % n for n in range(20)])
    ids = [await api.submit("child", inputs=inputs(n=parent)) for parent in parents * 2]
    store = api.services.polls._store
    run = type(store).run
    names: list[str] = []

    async def counting(self: Any, op: Any) -> Any:
        names.append(op.name)
        return await run(self, op)

    worker = await registered(api)
    monkeypatch.setattr(type(store), "run", counting)
    tasks = await claim(worker, slots=50)
    assert [task["parameters"]["n"] for task in tasks] == [*range(20)] * 2
    assert [task["task_id"] for task in tasks] == ids
    assert names.count("get") == 1


@pytest.mark.parametrize("shared", [True, False])
async def test_what_is_too_much_for_one_answer_goes_back(
    api: Api, monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    monkeypatch.setattr(limits, "PAGE_BYTES", 150)
    monkeypatch.setattr(limits, "PAGE_READ", 2)
    large = b'"%b"' % (b"x" * 100)
    parents = await ended(api, *[large] * 6)
    given = [parents[:1]] * 3 if shared else [parents[:2], parents[2:4], parents[4:]]
    ids = [await api.submit("child", inputs=inputs(texts=each)) for each in given]
    plain = await api.submit("child")
    worker = await registered(api)
    handed = [task["task_id"] for task in await claim(worker)]
    assert handed == [*(ids[:2] if shared else ids[:1]), plain]
    rest = [task_id for task_id in ids if task_id not in handed]
    stored = [await api.world.task(task_id) for task_id in rest]
    assert {(task.state, task.retry_count) for task in stored} == {(State.QUEUED, 0)}
    seen = [*handed]
    for number in range(len(rest)):
        seen += [task["task_id"] for task in await claim(worker, request_id=f"s{number}")]
    assert sorted(seen) == sorted([*ids, plain]), "all come in the end"


async def test_what_no_task_can_take_fails(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PAGE_READ", 1)
    monkeypatch.setattr(limits, "INPUT_BYTES", 150)
    parents = await ended(api, *[b'"%b"' % (b"x" * 100)] * 3)
    task_id = await api.submit("child", inputs=inputs(texts=parents))
    fine = await api.submit("child", inputs=inputs(text=parents[0]))
    worker = await registered(api)
    seen = [task["task_id"] for number in "12" for task in await claim(worker, request_id=number)]
    assert seen == [fine]
    task = await api.world.task(task_id)
    assert task.error is not None
    assert (task.state, task.error.code) == (State.FAILED, "INPUTS_TOO_LARGE")


async def test_a_result_that_the_server_has_no_key_for_is_put_off(
    servers: Servers, tmp_path: Path
) -> None:
    old, new = Key("k1", b"1" * 32), Key("k2", b"2" * 32)
    async with opened("sqlite-file", servers, tmp_path, encryption_keys=[old]) as world:
        parent = await world.submit()
        worker_id = await world.worker()
        await world.settle(await world.claim_one(worker_id), Completed(b'"hush"'))
        both = World(engines.open(world.url, encryption_keys=[new, old]), world.url, {})
        later = World(engines.open(world.url, encryption_keys=[new]), world.url, {})
        async with serving(later) as api:
            task_id = await api.submit("child", inputs=inputs(text=parent))
            assert await (await registered(api)).poll() == []
            task = await later.task(task_id)
            assert (task.state, task.retry_count) == (State.SCHEDULED, 0)
        await world.advance(61)
        async with serving(both) as api:
            (handed,) = await (await registered(api)).poll()
            assert handed["parameters"] == {"text": "hush"}
        await both.close()
        await later.close()
