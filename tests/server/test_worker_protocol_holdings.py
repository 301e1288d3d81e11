"""Workers that list their tasks in heartbeats, on every engine: what they do not have goes on."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane.core.ids import new_id
from fairlane.core.model import Claimed, Start
from fairlane.core.outcomes import Released
from fairlane.core.states import State
from fairlane.server import holdings
from tests.server.kit import Api, refused, serving
from tests.server.test_worker_protocol_polls import Unheard
from tests.server.workers import Worker, registered, waiting


@pytest.fixture(autouse=True)
def without_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare with every heartbeat, however soon it comes after the one before."""
    monkeypatch.setattr(holdings, "PAUSE_SHARE", float("inf"))


async def beat(worker: Worker, *tasks: dict[str, Any]) -> list[str]:
    """What the worker is to stop."""
    listed = [{"task_id": each["task_id"], "attempt": each["attempt"]} for each in tasks]
    cancelled: list[str] = (await worker.told("heartbeat", {"tasks": listed}))["cancelled"]
    return cancelled


async def test_a_poll_whose_server_lost_the_store_while_the_worker_went_on_at_another(
    served: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    unheard = Unheard(monkeypatch)
    worker = await registered(served)
    poll = await waiting(served, worker, wait_seconds=1)
    task_id = await served.submit()
    refused(await poll.answer, 503, "store_unavailable")
    assert set(unheard.lost) == {task_id}
    unheard.over = True
    async with serving(served.world) as other:
        elsewhere = Worker(other, worker.id, await other.connect())
        assert await elsewhere.poll(request_id="next") == []
        assert await served.world.state(task_id) is State.EXECUTING
        assert await beat(elsewhere) == []
        assert await served.world.state(task_id) is State.EXECUTING, "it may be on its way"
        assert await beat(elsewhere) == []
        (task,) = await elsewhere.poll(request_id="last")
        assert (task["task_id"], task["attempt"]) == (task_id, 2)
        assert (await served.world.task(task_id)).retry_count == 0
        assert await beat(elsewhere, task) == []
        assert (await elsewhere.result(task_id, attempt=2)).status == 200


async def test_what_is_listed_stays(served: Api) -> None:
    worker = await registered(served)
    ids = [await served.submit() for _ in range(3)]
    tasks = await worker.poll(3)
    for _ in range(3):
        assert await beat(worker, *tasks) == []
        without = {"tasks": [{"task_id": task_id} for task_id in ids]}
        assert (await worker.told("heartbeat", without))["cancelled"] == []
        assert (await worker.told("heartbeat"))["cancelled"] == [], "it lists nothing"
    assert await served.world.census() == {State.EXECUTING: 3}


async def test_what_the_worker_forgot_goes_on_elsewhere(served: Api) -> None:
    """The tasks of a poll count as started: that costs a retry."""
    worker = await registered(served)
    ids = [await served.submit(max_retries=1) for _ in range(2)]
    kept, forgotten = sorted(await worker.poll(2), key=lambda task: str(task["task_id"]))
    starts = [Start(task_id, 1) for task_id in ids]  # the server may not have stored them yet
    await served.world.run(served.world.ops.start(worker.id, starts))
    for _ in range(2):
        assert await beat(worker, kept) == []
    task = await served.world.task(forgotten["task_id"])
    assert (task.status, task.retry_count) == (State.QUEUED, 1)
    assert task.attempts[0].error is not None
    assert task.attempts[0].error.code == "WORKER_LOST"
    refused(await worker.result(forgotten["task_id"], attempt=1), 409, "lease_lost")
    assert await served.world.state(kept["task_id"]) is State.EXECUTING


async def test_what_the_store_does_not_know_is_to_stop(served: Api) -> None:
    worker = await registered(served)
    task_id = await served.submit()
    (task,) = await worker.poll()
    world = served.world
    stored = await world.task(task_id)
    held = Claimed(
        task_id, 1, worker.id, "work", "default", 5, b"{}", 0, 3, 0, stored.timeout, 0, 0
    )
    await world.settle(held, Released())
    unknown: dict[str, Any] = {"task_id": new_id(), "attempt": 1}
    assert await beat(worker, task, unknown) == []
    assert sorted(await beat(worker, task, unknown)) == sorted([task_id, unknown["task_id"]])
    # Over the other protocol the same, with attempts.
    body = {"tasks": [task_of(task)]}
    assert (await worker.told("pulse", body))["let_go"] == []
    assert (await worker.told("pulse", body))["let_go"] == [task_of(task)]


def task_of(task: dict[str, Any]) -> dict[str, Any]:
    return {"task_id": task["task_id"], "attempt": task["attempt"]}


async def test_a_pause_lies_between_two_comparisons(
    served: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holdings, "PAUSE_SHARE", 1)
    worker = await registered(served, lease_seconds=3600)
    await served.submit()
    await worker.poll()
    for _ in range(5):
        assert await beat(worker) == []
    assert await served.world.census() == {State.EXECUTING: 1}


@pytest.mark.parametrize(
    "tasks", ["x", [1], [{"task_id": "x"}], [{"attempt": 1}], [{"task_id": new_id()}] * 10_001]
)
async def test_a_list_that_makes_no_sense_changes_nothing(api: Api, tasks: Any) -> None:
    worker = await registered(api)
    await api.submit()
    await worker.poll()
    for _ in range(2):
        assert (await worker.ask("heartbeat", {"tasks": tasks})).status == 422
    assert await api.world.census() == {State.EXECUTING: 1}
