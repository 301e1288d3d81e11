"""Workflows that are resumed are finished by workers, on every engine and through a server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fairlane import Fail, TaskFailed, errors, gather
from fairlane.core.sealing import Key
from fairlane.core.workflows import WorkflowState
from fairlane.runtime.shapes import Shape
from tests.conformance.test_encryption import keyed
from tests.conftest import Servers
from tests.fixtures.stores import KINDS, REMOTE, World, opened
from tests.worker.kit import PATIENCE, application, working
from tests.worker.test_workflows import RESULTS, Shop, shapes

KEY = Key("k1", b"1" * 32)


@pytest.fixture(params=[*KINDS, REMOTE])
async def world(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path
) -> AsyncIterator[World]:
    async with opened(request.param, servers, tmp_path) as world:
        yield world


class Till:
    """A shop with a member that fails until it is repaired."""

    def __init__(self, world: World) -> None:
        self.shop = Shop(application(world))
        self.broken = True
        self.runs = 0

        @self.shop.app.task(max_retries=0)
        async def charge(cents: int) -> int:
            self.runs += 1
            if self.broken:
                raise Fail("the till is empty", code="EMPTY")
            return cents

        self.charge = charge


async def finished(till: Till) -> None:
    """Every shape fails, is resumed, and has the result that it has otherwise."""
    app = till.shop.app
    found: dict[str, Shape[Any]] = shapes(till.shop, Shape(till.charge.prepare(1)))
    flows = {name: await app.submit(shape) for name, shape in found.items()}
    async with working(app):
        for flow in flows.values():
            with pytest.raises(TaskFailed, match="the till is empty"):
                await flow.result(PATIENCE)
        till.broken = False
        for flow in flows.values():
            assert all(answer.applied for answer in await flow.resume())
        assert {name: await flow.result(PATIENCE) for name, flow in flows.items()} == RESULTS
        assert till.runs == 2 * len(flows)
        for flow in flows.values():
            assert await flow.status() is WorkflowState.COMPLETED
            assert await flow.resume() == []


async def test_every_shape(world: World) -> None:
    await finished(Till(world))


# A server has the keys itself.
@pytest.mark.parametrize("world", KINDS, indirect=True)
async def test_with_sealed_results(world: World) -> None:
    await finished(Till(keyed(world, KEY)))


async def test_a_graph_from_one_of_its_tasks(world: World) -> None:
    till = Till(world)
    till.broken = False
    with till.shop.app.graph("order") as g:
        first = g.add(till.shop.price, 3)
        paid = g.add(till.charge, first)
        g.returns([paid, g.add(till.shop.double, paid)])
    flow = await g.submit()
    with pytest.raises(errors.WorkflowRunning):
        await flow.delete()
    async with working(till.shop.app):
        assert await flow.result(PATIENCE) == [3, 6]
        assert len(await flow.resume("charge")) == 2
        assert await flow.result(PATIENCE) == [3, 6]
        nodes = {node.name: node for node in await flow.nodes()}
        for name, attempts in (("price", 1), ("double", 2)):
            task = await till.shop.app.get(nodes[name].task_id)
            assert task is not None
            assert task.attempt == attempts
        with pytest.raises(errors.UnknownNode):
            await flow.resume("ship")
        assert len(await flow.delete()) == 3
    assert await flow.state() is None


def test_in_tests_of_applications(world: World) -> None:
    till = Till(world)
    with till.shop.app.in_memory() as store:
        pair = gather(till.charge.prepare(1), till.shop.price.prepare(2))
        flow = till.shop.app.submit_sync(pair.then(till.shop.total))
        store.work_sync()
        till.broken = False
        assert len(flow.resume_sync()) == 2
        store.work_sync()
        assert flow.result_sync() == 3
        flow.delete_sync()
        assert flow.state_sync() is None
