"""Workflows of fixed shapes: what is built from calls, and what is refused before it is stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import pytest

from fairlane import Context, Fail, Failed, Fairlane, Graph, TaskFailed, gather
from fairlane.core import limits
from fairlane.core.errors import (
    InvalidArguments,
    InvalidInputs,
    InvalidTask,
    InvalidWorkflow,
    ResultNotKnown,
    ResultTimeout,
)
from fairlane.core.inputs import TaskInput
from fairlane.core.states import State
from fairlane.core.workflows import WorkflowState
from fairlane.runtime.shapes import Shape

PATIENCE = 20


@dataclass
class Order:
    number: int
    lines: list[str]


class Shop:
    """An application whose tasks take results of each other."""

    def __init__(self, url: str = "sqlite://") -> None:
        app = self.app = Fairlane(url)
        self.runs: list[str] = []

        @app.task
        async def load(number: int) -> Order:
            self.runs.append(f"load {number}")
            return Order(number, [f"line {n}" for n in range(number)])

        @app.task
        async def charge(order: Order, card: str = "visa") -> str:
            assert isinstance(order, Order)
            return f"{card} pays {order.number}"

        @app.task(max_retries=0)
        async def price(cents: int) -> int:
            if cents < 0:
                raise Fail("sold out", code="SOLD_OUT")
            return cents

        @app.task
        async def total(prices: Sequence[int | Failed], extra: int = 0) -> int:
            return sum(each for each in prices if isinstance(each, int)) + extra

        @app.task
        async def sums(groups: list[list[int]]) -> list[int]:
            return [sum(group) for group in groups]

        @app.task
        async def anything(value: Any) -> Any:
            return value

        self.load, self.charge, self.price = load, charge, price
        self.total, self.sums, self.anything = total, sums, anything


@pytest.fixture
def shop() -> Shop:
    return Shop()


async def result_of(shop: Shop, shape: Shape[Any]) -> Any:
    with shop.app.inline():
        flow = await shop.app.submit(shape)
        return await flow.result(PATIENCE)


class TestShapes:
    async def test_a_chain(self, shop: Shop) -> None:
        shape = shop.load.prepare(7).then(shop.charge, card="master").then(shop.anything)
        assert await result_of(shop, shape) == "master pays 7"

    async def test_a_gather_gives_a_list(self, shop: Shop) -> None:
        prices = [shop.price.prepare(cents) for cents in (1, 2, 3)]
        assert await result_of(shop, gather(*prices).then(shop.total, extra=10)) == 16
        assert await result_of(shop, gather(*prices)) == [1, 2, 3]
        assert await result_of(shop, gather(prices[0])) == [1]

    async def test_results_of_different_types_are_a_tuple(self, shop: Shop) -> None:
        order = shop.load.prepare(1)
        both = gather(order, order.then(shop.charge))
        assert await result_of(shop, both) == (Order(1, ["line 0"]), "visa pays 1")
        assert shop.runs == ["load 1"]
        lists = gather(shop.price.map([1, 2]), shop.price.map([3]))
        assert await result_of(shop, lists) == [[1, 2], [3]]
        mixed = gather(shop.price.map([1, 2]), order)
        assert await result_of(shop, mixed) == ([1, 2], Order(1, ["line 0"]))

    async def test_a_map(self, shop: Shop) -> None:
        shape = shop.price.map(range(5)).then(shop.total)
        assert await result_of(shop, shape) == 10
        orders = [Order(number, []) for number in (1, 2)]
        assert await result_of(shop, shop.charge.map(orders, "x")) == ["x pays 1", "x pays 2"]

    async def test_lists_in_lists(self, shop: Shop) -> None:
        empty: Shape[list[int]] = gather()
        groups = gather(shop.price.map([1, 2]), empty, shop.price.map([3]))
        assert await result_of(shop, groups.then(shop.sums)) == [3, 0, 3]
        deep = gather(gather(gather(shop.price.prepare(4)), empty))
        assert await result_of(shop, deep.then(shop.anything)) == [[[4], []]]
        chain = shop.load.prepare(1).then(shop.charge)
        everything = gather(chain, gather(chain, shop.price.prepare(2))).then(shop.anything)
        assert await result_of(shop, everything) == ["visa pays 1", ["visa pays 1", 2]]

    async def test_an_empty_gather_runs_its_child_at_once(self, shop: Shop) -> None:
        assert await result_of(shop, gather().then(shop.anything)) == []
        assert await result_of(shop, shop.price.map([]).then(shop.total, 5)) == 5

    async def test_a_call_that_is_given_twice_runs_once(self, shop: Shop) -> None:
        order = shop.load.prepare(3)
        again = gather(order, order.then(shop.charge), order, order)
        assert await result_of(shop, again.then(shop.anything)) == [
            *({"number": 3, "lines": ["line 0", "line 1", "line 2"]}, "visa pays 3"),
            *[{"number": 3, "lines": ["line 0", "line 1", "line 2"]}] * 2,
        ]
        assert shop.runs == ["load 3"]

    def test_nothing_but_tasks_and_edges_is_stored(self, shop: Shop) -> None:
        with shop.app.in_memory():
            price = shop.price.prepare(1)
            shape = gather(gather(price, gather(price)), shop.price.prepare(2))
            flow = shop.app.submit_sync(shape.then(shop.anything))
            nodes = flow.nodes_sync()
            assert [node.name for node in nodes] == ["price", "price-2", "anything"]
            first, second, last = (node.task_id for node in nodes)
            assert nodes[2].parents == (first, second)
            task = shop.app.get_sync(last)
            assert task is not None
            assert task.payload == {}
            assert task.inputs == {
                "value": TaskInput((first, first, second), many=True, nesting=(2, -1, 1, -1, -1))
            }

    def test_the_shape_of_a_submission_can_be_submitted_again(self, shop: Shop) -> None:
        with shop.app.in_memory():
            shape = shop.load.prepare(1).then(shop.charge)
            flows = [shop.app.submit_sync(shape) for _ in range(2)]
            ids = {node.task_id for flow in flows for node in flow.nodes_sync()}
            assert len(ids) == 4, "each is a workflow of its own"

    async def test_a_handler_submits_one_within_its_trace(self, shop: Shop) -> None:
        app = shop.app

        @app.task
        async def parent(ctx: Context) -> list[str]:
            one = await ctx.submit(shop.load.prepare(1).then(shop.charge))
            other = ctx.submit_sync(shop.price.map([1]))
            return [one.workflow_id, other.workflow_id]

        with app.inline() as store:
            handle = await parent.submit()
            task = await app.get(handle.task_id)
            for workflow_id in await handle.result(PATIENCE):
                for node in await app.workflow(workflow_id).nodes():
                    child = await app.get(node.task_id)
                    assert child is not None
                    assert task is not None
                    assert child.trace_id == task.trace_id
            await store.work()


class TestGraphs:
    async def test_results_become_arguments(self, shop: Shop) -> None:
        with shop.app.inline():
            with shop.app.graph("order") as g:
                order = g.add(shop.load, 3)
                paid = g.add(shop.charge.options(node="pay"), order, card="x")
                line = g.add(shop.anything, order.lines[1])
                items: Any = order.lines
                first = g.add(shop.anything, items[0])
                g.returns(g.add(shop.anything, [paid, [line, first], line]))
            flow = await g.submit()
            expected = ["x pays 3", ["line 1", "line 0"], "line 1"]
            assert await flow.result(PATIENCE) == expected
            assert flow.workflow_id == g.workflow_id
            state = await flow.state()
            assert state is not None
            assert (state.name, state.state) == ("order", "completed")
            names = [node.name for node in state.nodes]
            assert names == ["load", "pay", "anything", "anything-2", "anything-3"]
            assert await shop.app.workflow(flow.workflow_id).result() == expected

    async def test_a_list_of_results(self, shop: Shop) -> None:
        with shop.app.inline():
            with shop.app.graph("prices") as g:
                prices = [g.add(shop.price, cents) for cents in (1, 2)]
                every = [g.add(shop.load, number) for number in (4, 5)]
                numbers: Any = [each.number for each in every]
                g.returns([g.add(shop.total, prices), g.add(shop.total, numbers)])
            flow = await g.submit()
            assert await flow.result(PATIENCE) == [3, 9]
            assert flow.task_id is None
            assert await shop.app.workflow(flow.workflow_id).result() == [3, 9]

    async def test_order_without_data(self, shop: Shop) -> None:
        with shop.app.in_memory() as store:
            with shop.app.graph("order") as g:
                first = g.add(shop.load, 1)
                second = g.add(shop.load.options(after=[first]), 2)
                g.add(shop.load.options(after=[second, first]), 3)
            flow = await g.submit()
            nodes = await flow.nodes()
            assert [len(node.parents) for node in nodes] == [0, 1, 2]
            await store.work()
            assert shop.runs == ["load 1", "load 2", "load 3"]
            assert await flow.result(PATIENCE) is None, "it returns nothing"

    async def test_tasks_outside_of_it_may_be_waited_for(self, shop: Shop) -> None:
        with shop.app.in_memory() as store:
            other = await shop.price.submit(1)
            with shop.app.graph("order") as g:
                task = shop.charge.options(depends_on=[other.task_id])
                g.returns(g.add(task, g.add(shop.load, 1)))
            flow = await g.submit()
            await store.work()
            assert await flow.result(PATIENCE) == "visa pays 1"
            assert (await flow.nodes())[1].parents[1] == other.task_id

    def test_a_second_submission_is_the_same_workflow(self, shop: Shop) -> None:
        with shop.app.in_memory():
            with shop.app.graph("order") as g:
                g.add(shop.load, 1)
            assert g.submit_sync().workflow_id == g.submit_sync().workflow_id
            assert len(shop.app.list_sync().tasks) == 1

    USES: ClassVar[dict[str, Callable[[Any], Any]]] = {
        "bool": bool,
        "iter": list,
        "len": len,
        "in": lambda order: 1 in order,
        "==": lambda order: order == 1,
        "<": lambda order: order < 1,
        "+": lambda order: order + 1,
        "1 +": lambda order: 1 + order,
        "str": str,
        "format": lambda order: f"{order:>5}",
        "call": lambda order: order(),
        "slice": lambda order: order[1:],
        "int": int,
    }

    @pytest.mark.parametrize("use", USES.values(), ids=USES)
    def test_a_result_is_not_known_yet(self, shop: Shop, use: Callable[[Any], Any]) -> None:
        order: Any = shop.app.graph("order").add(shop.load, 1)
        for value in (order, order.lines):
            with pytest.raises(ResultNotKnown, match="only when the task has run") as caught:
                use(value)
            assert "the result of load" in caught.value.message
        assert repr(order.lines[0]) == "<result of load/lines/0>"
        assert not hasattr(order, "_ipython_display_")


class Start(NamedTuple):
    """A graph with one task."""

    g: Graph
    shop: Any
    order: Any


class TestChecks:
    """What is refused: with the names of the tasks, and before anything is stored."""

    CASES: ClassVar[dict[str, tuple[Callable[[Shop], Any], str]]] = {
        "chain": (
            lambda shop: shop.load.prepare(1).then(shop.price),  # type: ignore[arg-type]
            "parameter cents of price is int, and cannot be the result of load, which is Order",
        ),
        "item": (
            lambda shop: shop.load.map([1, 2]).then(shop.total),  # type: ignore[arg-type]
            "parameter prices of total .* result of load, which is tuple.*Order",
        ),
        "gather for one": (
            lambda shop: gather(shop.price.prepare(1)).then(shop.price),  # type: ignore[arg-type]
            "parameter cents of price is int",
        ),
        "nesting": (
            lambda shop: shop.price.map([1]).then(shop.sums),  # type: ignore[arg-type]
            "parameter groups of sums",
        ),
        "named": (
            lambda shop: (
                shop.load.options(node="first").prepare(1).then(shop.price.options(node="second"))  # type: ignore[arg-type]
            ),
            "cents of second is int, and cannot be the result of first",
        ),
        "empty": (lambda shop: shop.app.submit_sync(gather()), "has at least one task"),
        "many": (
            lambda shop: shop.app.submit_sync(shop.price.map(range(1_000))),
            "A workflow has at most 999 tasks",
        ),
        "many with a child": (
            lambda shop: shop.app.submit_sync(shop.price.map(range(999)).then(shop.total)),
            "A workflow has at most 999 tasks",
        ),
        "key": (
            lambda shop: shop.app.submit_sync(
                gather(shop.price.options(idempotency_key="k").prepare(1))
            ),
            "The task price cannot have an idempotency key",
        ),
        "same name": (
            lambda shop: shop.app.submit_sync(shop.price.options(node="p").map([1, 2])),
            "Two tasks of the workflow have the name p",
        ),
        "name": (lambda shop: shop.price.options(node="a\n"), "The name of a workflow"),
        "graph name": (lambda shop: shop.app.graph(""), "The name of a workflow"),
        "after": (
            lambda shop: shop.price.options(after=[1]).prepare(1),
            "price has after=…, which is for nodes of a graph",
        ),
    }

    @pytest.mark.parametrize(("build", "says"), CASES.values(), ids=CASES)
    def test_shapes(self, shop: Shop, build: Callable[[Shop], Any], says: str) -> None:
        self.refused(shop, build, says)

    def refused(self, shop: Shop, build: Callable[[Shop], Any], says: str) -> None:
        with shop.app.in_memory():
            with pytest.raises(InvalidWorkflow, match=says):
                build(shop)
            assert shop.app.list_sync().tasks == []

    GRAPHS: ClassVar[dict[str, tuple[Callable[[Start], Any], str]]] = {
        "type": (lambda at: at.g.add(at.shop.price, at.order), "cannot be the result of load"),
        "part": (
            lambda at: at.g.add(at.shop.price, at.order.lines),
            r"cents of price is int, .* result of load, which is list\[str\]",
        ),
        "no such part": (
            lambda at: at.g.add(at.shop.price, at.order.total.cents),
            "The result of load has no part total/cents: it is Order",
        ),
        "other graph": (
            lambda at: at.shop.app.graph("g").add(at.shop.charge, at.order),
            "charge takes the result of load, which is a task of another graph",
        ),
        "mixed list": (
            lambda at: at.g.add(at.shop.anything, [at.order, 1]),
            "A list for anything has results and other values",
        ),
        "parts": (
            lambda at: at.g.add(at.shop.anything, [at.order, at.order.number]),
            "A list for anything takes the same part",
        ),
        "dict": (
            lambda at: at.g.add(at.shop.anything, {"a": at.order}),
            "A dict for anything has a result in it",
        ),
        "after no node": (
            lambda at: at.g.add(at.shop.price.options(after=["x"]), 1),
            r"price waits for what g.add\(…\) returns, not 'x'",
        ),
        "after elsewhere": (
            lambda at: at.shop.app.graph("g").add(at.shop.price.options(after=[at.order]), 1),
            "a task of another graph",
        ),
        "returns a value": (lambda at: at.g.returns(5), "A graph returns the result of"),
        "returns a part": (lambda at: at.g.returns(at.order.lines), "returns whole results"),
        "returns another": (
            lambda at: at.g.returns(at.shop.app.graph("g").add(at.shop.load, 1)),
            "a task of another graph",
        ),
        "same name": (
            lambda at: [at.g.add(at.shop.price.options(node="x"), number) for number in range(2)],
            "Two tasks of the graph order have the name x",
        ),
        "after the end": (
            lambda at: (at.g.plan(), at.g.add(at.shop.price, 1)),
            "The graph order is complete",
        ),
        "nothing in it": (
            lambda at: at.shop.app.graph("g").submit_sync(),
            "has at least one task",
        ),
    }

    @pytest.mark.parametrize(("build", "says"), GRAPHS.values(), ids=GRAPHS)
    def test_graphs(self, shop: Shop, build: Callable[[Start], Any], says: str) -> None:
        def whole(shop: Shop) -> Any:
            g = shop.app.graph("order")
            return build(Start(g, shop, g.add(shop.load, 1)))

        self.refused(shop, whole, says)

    def test_arguments(self, shop: Shop) -> None:
        charge: Any = shop.charge
        for build in (
            lambda: shop.load.prepare(1).then(charge, colour="red"),
            lambda: shop.load.prepare(1).then(charge, card=5),
            lambda: shop.load.prepare(1).then(charge, "x", order=1),
            lambda: shop.load.map(["x"]),  # type: ignore[list-item]
        ):
            with pytest.raises(InvalidArguments):
                build()

    def test_lists_that_are_too_deep(self, shop: Shop) -> None:
        shape: Any = shop.price.prepare(1)
        for _ in range(limits.INPUT_PATH + 2):
            shape = gather(shape)
        with shop.app.in_memory(), pytest.raises(InvalidInputs):
            shop.app.submit_sync(shape.then(shop.anything))

    def test_a_task_of_another_application(self, shop: Shop) -> None:
        other = Shop("sqlite:///other.db")
        with shop.app.in_memory():
            shape = shop.load.prepare(1).then(other.charge)
            with pytest.raises(InvalidTask, match="charge is a task of another application"):
                shop.app.submit_sync(shape)
            assert shop.app.list_sync().tasks == []

    def test_as_many_as_there_may_be(self, shop: Shop) -> None:
        chain: Shape[Any] = shop.price.prepare(1).then(shop.anything)
        for _ in range(limits.WORKFLOW_NODES - 2):
            chain = chain.then(shop.anything)
        with shop.app.in_memory():
            assert len(shop.app.submit_sync(chain).nodes_sync()) == limits.WORKFLOW_NODES


class TestHandle:
    async def test_the_first_task_that_failed_is_named(self, shop: Shop) -> None:
        with shop.app.inline():
            shape = gather(shop.price.prepare(1), shop.price.prepare(-1)).then(shop.total)
            flow = await shop.app.submit(shape.then(shop.anything))
            with pytest.raises(TaskFailed) as caught:
                await flow.result(PATIENCE)
            nodes = await flow.nodes()
            assert caught.value.task_id == nodes[1].task_id
            assert caught.value.error_code == "SOLD_OUT"
            assert "(price-2 in its workflow) is failed: sold out" in str(caught.value)
            assert await flow.status() is WorkflowState.FAILED
            with pytest.raises(TaskFailed, match="price-2"):
                shop.app.workflow(flow.workflow_id).result_sync(PATIENCE)

    async def test_a_list_of_which_one_failed(self, shop: Shop) -> None:
        with shop.app.inline():
            flow = await shop.app.submit(shop.price.map([1, -1]))
            with pytest.raises(TaskFailed, match="sold out"):
                await flow.result(PATIENCE)

    async def test_a_graph_without_result(self, shop: Shop) -> None:
        def build() -> Graph:
            with shop.app.graph("order") as g:
                bad = g.add(shop.price.options(node="bad"), -1)
                g.add(shop.total.options(on_parent_failure=policy), [bad])
            return g

        with shop.app.inline():
            policy = "cancel"
            failed = await build().submit()
            with pytest.raises(TaskFailed, match="bad in the workflow order"):
                await failed.result(PATIENCE)
            policy = "continue"
            fine = await build().submit()
            assert await fine.result(PATIENCE) is None

    async def test_one_that_has_not_ended(self, shop: Shop) -> None:
        with shop.app.in_memory():
            flow = await shop.app.submit(shop.load.prepare(1).then(shop.charge))
            with pytest.raises(ResultTimeout, match="goes on") as caught:
                await flow.result(0)
            assert caught.value.reasons
            assert await flow.status() is WorkflowState.RUNNING
            assert [each.applied for each in await flow.cancel()] == [True, True]
            assert await flow.status() is WorkflowState.CANCELLED
            with pytest.raises(TaskFailed, match="cancelled"):
                await flow.result(PATIENCE)

    async def test_one_that_is_gone(self, shop: Shop) -> None:
        with shop.app.inline():
            flow = await shop.app.submit(shop.load.prepare(1).then(shop.charge))
            for node in await flow.nodes():
                await shop.app.run(shop.app.backend.ops.delete([node.task_id]))
            assert await flow.status() is None
            assert await flow.nodes() == ()
            assert await flow.cancel() == []
            for handle in (flow, shop.app.workflow(flow.workflow_id)):
                with pytest.raises(TaskFailed, match="There is no"):
                    await handle.result(PATIENCE)
            with pytest.raises(TaskFailed, match="There is no workflow"):
                await flow.mermaid()

    async def test_one_whose_culprit_is_gone(self, shop: Shop) -> None:
        with shop.app.inline():
            flow = await shop.app.submit(shop.price.prepare(-1).then(shop.anything))
            first, _ = await flow.nodes()
            await shop.app.run(shop.app.backend.ops.delete([first.task_id]))
            with pytest.raises(TaskFailed, match="did not complete"):
                await flow.result(PATIENCE)

    def test_without_an_event_loop(self, shop: Shop) -> None:
        with shop.app.inline():
            flow = shop.app.submit_sync(shop.load.prepare(2).then(shop.charge))
            assert flow.result_sync(PATIENCE) == "visa pays 2"
            assert flow.status_sync() is WorkflowState.COMPLETED
            assert flow.cancel_sync() == []
            assert repr(flow) == f"<WorkflowHandle {flow.workflow_id}>"
            task = shop.app.get_sync(flow.task_id or "")
            assert task is not None
            assert task.state is State.COMPLETED
        with shop.app.in_memory():
            waiting = shop.app.submit_sync(shop.load.prepare(2).then(shop.charge))
            with pytest.raises(ResultTimeout):
                waiting.result_sync(0)

    def test_mermaid(self, shop: Shop) -> None:
        with shop.app.in_memory():
            with shop.app.graph("order") as g:
                order = g.add(shop.load, 1)
                g.add(shop.charge.options(node='"pay" <now>'), order)
            assert g.submit_sync().mermaid_sync() == (
                "flowchart LR\n"
                '  n1["load<br/>queued"]\n'
                '  n2["#34;pay#34; #60;now#62;<br/>scheduled"]\n'
                "  n1 --> n2"
            )
