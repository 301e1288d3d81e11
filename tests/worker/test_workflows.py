"""Workflows run by workers, on every engine and through a server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fairlane import Context, Fail, Failed, Fairlane, TaskFailed, TaskFunction, gather
from fairlane.core import limits
from fairlane.core.sealing import Key
from fairlane.core.states import State
from fairlane.core.workflows import WorkflowState
from fairlane.runtime.shapes import Shape
from fairlane.runtime.workflows import WorkflowHandle
from tests.conformance.test_encryption import keyed
from tests.conftest import Servers
from tests.fixtures.raw import written
from tests.fixtures.stores import KINDS, REMOTE, TRANSACTIONAL, World, opened
from tests.worker.kit import PATIENCE, application, happened, seen, working

KEY = Key("k1", b"1" * 32)


@pytest.fixture(params=[*KINDS, REMOTE])
async def world(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path
) -> AsyncIterator[World]:
    async with opened(request.param, servers, tmp_path) as world:
        yield world


class Shop:
    """An application whose tasks take results of each other."""

    def __init__(self, app: Fairlane) -> None:
        self.app = app
        self.started = asyncio.Event()
        """A `hold` runs."""

        @app.task(max_retries=0)
        async def price(cents: int) -> int:
            if cents < 0:
                raise Fail("sold out", code="SOLD_OUT")
            return cents

        @app.task
        async def double(cents: int) -> int:
            return 2 * cents

        @app.task
        async def total(prices: list[int]) -> int:
            return sum(prices)

        @app.task
        async def best(prices: Sequence[int | Failed]) -> list[Any]:
            return [each.code if isinstance(each, Failed) else each for each in prices]

        @app.task
        async def sums(groups: Sequence[Sequence[int | Failed]]) -> list[int]:
            return [sum(each for each in group if isinstance(each, int)) for group in groups]

        @app.task
        async def flaky(ctx: Context, cents: int) -> int:
            if ctx.attempt == 1:
                raise ValueError("not yet")
            return cents

        @app.task
        async def hold(cents: int) -> int:
            self.started.set()
            await asyncio.Event().wait()
            return cents

        @app.task
        async def large(size: int) -> str:
            return "x" * size

        @app.task
        async def lengths(texts: list[str]) -> list[int]:
            return [len(each) for each in texts]

        self.price: TaskFunction[[int], int] = price
        self.double, self.total, self.best, self.sums = double, total, best, sums
        self.flaky: TaskFunction[[int], int] = flaky
        self.hold, self.large, self.lengths = hold, large, lengths

    def tolerant(self) -> TaskFunction[[Sequence[int | Failed]], list[Any]]:
        return self.best.options(on_parent_failure="continue")


@pytest.fixture
def shop(world: World) -> Shop:
    return Shop(application(world))


def shapes(shop: Shop, member: Shape[int]) -> dict[str, Shape[Any]]:
    """Every shape with a member in it, whose result is 1 if it has one."""
    return {
        "chain": member.then(shop.double),
        "gather": gather(shop.price.prepare(5), member).then(shop.total),
        "chains in a gather": gather(
            shop.price.prepare(1).then(shop.double), member.then(shop.double)
        ).then(shop.total),
        "nested": gather(gather(member, shop.price.prepare(2)), shop.price.map([3])).then(
            shop.sums
        ),
    }


RESULTS = {"chain": 2, "gather": 6, "chains in a gather": 4, "nested": [3, 3]}


async def all_submitted(shop: Shop, one: Shape[int]) -> dict[str, WorkflowHandle[Any]]:
    return {name: await shop.app.submit(shape) for name, shape in shapes(shop, one).items()}


async def test_shapes(shop: Shop) -> None:
    flows = await all_submitted(shop, Shape(shop.price.prepare(1)))
    async with working(shop.app):
        assert {name: await flow.result(PATIENCE) for name, flow in flows.items()} == RESULTS
    assert {await flow.status() for flow in flows.values()} == {WorkflowState.COMPLETED}


async def test_a_member_that_retries(shop: Shop, world: World) -> None:
    flows = await all_submitted(shop, Shape(shop.flaky.prepare(1)))
    async with working(shop.app):
        for flow in flows.values():
            retrying = next(node for node in await flow.nodes() if node.type == "flaky")
            await seen(shop.app, retrying.task_id, State.RETRYING)
            assert await flow.status() is WorkflowState.RUNNING
        await world.advance(3_600)
        assert {name: await flow.result(PATIENCE) for name, flow in flows.items()} == RESULTS


async def test_a_member_that_fails(shop: Shop) -> None:
    flows = await all_submitted(shop, Shape(shop.price.prepare(-1)))
    tolerant = await shop.app.submit(shop.price.map([1, -1]).then(shop.tolerant()))
    async with working(shop.app):
        for flow in flows.values():
            with pytest.raises(TaskFailed, match="sold out") as caught:
                await flow.result(PATIENCE)
            assert caught.value.error_code == "SOLD_OUT"
        assert await tolerant.result(PATIENCE) == [1, "SOLD_OUT"]
    assert await tolerant.status() is WorkflowState.COMPLETED
    assert {await flow.status() for flow in flows.values()} == {WorkflowState.FAILED}


async def test_a_member_that_is_cancelled_while_it_runs(shop: Shop) -> None:
    flow = await shop.app.submit(
        gather(shop.hold.prepare(1), shop.price.prepare(2)).then(shop.total).then(shop.double)
    )
    async with working(shop.app):
        await happened(shop.started)
        held = next(node for node in await flow.nodes() if node.type == "hold")
        await shop.app.cancel(held.task_id)
        with pytest.raises(TaskFailed, match="hold in its workflow") as caught:
            await flow.result(PATIENCE)
    assert (caught.value.task_id, caught.value.state) == (held.task_id, State.CANCELLED)
    assert await flow.status() is WorkflowState.CANCELLED


async def test_a_whole_workflow_is_cancelled_while_it_runs(shop: Shop) -> None:
    flow = await shop.app.submit(shop.hold.prepare(1).then(shop.double).then(shop.double))
    async with working(shop.app):
        await happened(shop.started)
        assert [answer.applied for answer in await flow.cancel()] == [True] * 3
        with pytest.raises(TaskFailed):
            await flow.result(PATIENCE)
    nodes = await flow.nodes()
    assert [node.state for node in nodes] == [State.CANCELLED] * 3


async def test_a_member_that_expires(shop: Shop, world: World) -> None:
    past = datetime(2020, 1, 1, tzinfo=UTC)
    flow = await shop.app.submit(
        gather(shop.price.options(expires_at=past).prepare(1)).then(shop.total)
    )
    async with working(shop.app):
        with pytest.raises(TaskFailed, match="price in its workflow"):
            await flow.result(PATIENCE)
    assert await flow.status() is WorkflowState.FAILED


async def test_a_member_that_is_deleted_before_its_child_runs(shop: Shop, world: World) -> None:
    delayed = shop.total.options(delay_seconds=600)
    flow = await shop.app.submit(gather(shop.price.prepare(1), shop.price.prepare(2)).then(delayed))
    async with working(shop.app):
        first, second, _ = await flow.nodes()
        for node in (first, second):
            await seen(shop.app, node.task_id, State.COMPLETED)
        await world.run(world.ops.delete([first.task_id]))
        await world.advance(700)
        with pytest.raises(TaskFailed, match="which was deleted") as caught:
            await flow.result(PATIENCE)
    assert caught.value.error_code == "INPUT_MISSING"
    state = await flow.state()
    assert state is not None
    assert (state.complete, len(state.nodes)) == (False, 2)


async def test_a_graph(shop: Shop) -> None:
    with shop.app.graph("order") as g:
        prices = [g.add(shop.price, cents) for cents in (1, -1)]
        doubled = g.add(shop.double, prices[0])
        last = g.add(shop.tolerant().options(node="last", after=[doubled]), prices)
        g.returns([doubled, last])
    flow = await g.submit()
    async with working(shop.app):
        assert await flow.result(PATIENCE) == (2, [1, "SOLD_OUT"])
    assert await shop.app.workflow(g.workflow_id).result(PATIENCE) == [2, [1, "SOLD_OUT"]]
    state = await flow.state()
    assert state is not None
    assert (state.name, state.state, state.complete) == ("order", "completed", True)
    assert [node.name for node in state.nodes] == ["price", "price-2", "double", "last"]


async def test_results_of_a_mebibyte(shop: Shop) -> None:
    size = limits.RESULT_BYTES - 2
    one, other = (shop.large.prepare(size) for _ in range(2))
    flow = await shop.app.submit(gather(one, other, one).then(shop.lengths))
    async with working(shop.app):
        assert await flow.result(PATIENCE) == [size] * 3
    assert len(await flow.nodes()) == 3


async def test_an_empty_gather(shop: Shop) -> None:
    nothing: list[int] = []
    flow = await shop.app.submit(shop.price.map(nothing).then(shop.total).then(shop.double))
    async with working(shop.app):
        assert await flow.result(PATIENCE) == 0


async def test_a_wide_one(shop: Shop) -> None:
    flow = await shop.app.submit(shop.price.map(range(200)).then(shop.total))
    async with working(shop.app, concurrency=50):
        assert await flow.result(PATIENCE) == sum(range(200))


# A server has the keys itself.
@pytest.mark.parametrize("world", KINDS, indirect=True)
async def test_encrypted(world: World) -> None:
    shop = Shop(application(keyed(world, KEY)))
    flow = await shop.app.submit(shop.large.map([70, 80]).then(shop.lengths))
    async with working(shop.app):
        assert await flow.result(PATIENCE) == [70, 80]
    assert b"xxxxxxxx" not in await written(world.backend, world.url)


@pytest.mark.parametrize("world", TRANSACTIONAL, indirect=True)
async def test_in_a_transaction_of_the_caller(world: World, shop: Shop) -> None:
    shape = shop.price.prepare(1).then(shop.double)

    async def submitted(*, fails: bool) -> WorkflowHandle[int]:
        async with shop.app.transaction() as connection:
            flow = await shop.app.submit(shape, connection=connection)
            kept.append(flow)
            if fails:
                raise ZeroDivisionError
        return flow

    kept: list[WorkflowHandle[int]] = []
    with pytest.raises(ZeroDivisionError):
        await submitted(fails=True)
    assert await kept[0].state() is None
    assert (await shop.app.list()).tasks == []
    flow = await submitted(fails=False)
    async with working(shop.app):
        assert await flow.result(PATIENCE) == 2


async def test_payloads_by_reference(world: World, shop: Shop, tmp_path: Path) -> None:
    shop.app.blobs = f"file://{tmp_path / 'blobs'}"
    text = "y" * limits.PAYLOAD_BYTES

    @shop.app.task
    async def join(number: int, text: str) -> int:
        return number + len(text)

    flow = await shop.app.submit(shop.price.prepare(1).then(join, text))
    async with working(shop.app):
        assert await flow.result(PATIENCE) == 1 + len(text)
