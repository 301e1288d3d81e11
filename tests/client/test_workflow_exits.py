"""Graphs and shapes with a policy for failures, and with a task that runs at the end."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fairlane import Fail, Fairlane, NodeOutcome, errors, gather
from fairlane.core.states import State

app = Fairlane("sqlite://")
seen: list[list[tuple[str, str | None, object]]] = []


@app.task(max_retries=0)
async def price(article: str) -> int:
    if article == "unicorn":
        raise Fail("no such article", code="UNKNOWN")
    return len(article)


@app.task
async def total(prices: Sequence[int]) -> int:
    return sum(prices)


@app.task
async def report(outcomes: list[NodeOutcome], title: str) -> str:
    seen.append([(each.node, each.state, each.result) for each in outcomes])
    return title


@app.task
async def strange(outcomes: int) -> None: ...


@pytest.fixture(autouse=True)
def _forget() -> None:
    seen.clear()


def test_a_graph_with_a_task_at_its_end() -> None:
    with app.graph("order") as g:
        tea = g.add(price, "tea")
        g.returns(g.add(total, [tea, g.add(price, "milk")]))
        g.on_exit(report, "order")
    with app.inline():
        flow = g.submit_sync()
        assert flow.result_sync() == 7
        assert flow.status_sync() == "completed"
        assert [node.name for node in flow.nodes_sync()][-1] == "report"
    assert seen == [
        [("price", "completed", 3), ("price-2", "completed", 4), ("total", "completed", 7)]
    ]


def test_a_shape_whose_failure_cancels_the_rest() -> None:
    shape = price.map(["unicorn", "tea"]).then(total).on_exit(report, title="prices")
    with app.inline() as store:
        flow = app.submit_sync(shape, on_failure="cancel")
        with pytest.raises(errors.TaskFailed, match="no such article"):
            flow.result_sync()
        assert flow.status_sync() == "failed"
        (found,) = app.workflows_sync(state="failed").workflows
        assert (found.workflow_id, found.tasks) == (flow.workflow_id, 4)
        assert sum(found.counts.values()) == 4
        assert found.counts[State.COMPLETED] >= 1
        assert store is not None
    (outcomes,) = seen
    assert [each[0] for each in outcomes] == ["price", "price-2", "total"]
    assert outcomes[0][1] == "failed"
    assert outcomes[2][1] == "cancelled"


async def test_one_call_with_a_task_at_its_end() -> None:
    with app.inline():
        flow = await app.submit(price.prepare("tea").on_exit(report, "one"))
        assert await flow.result() == 3
        page = await app.workflows(name=None)
        assert [each.workflow_id for each in page.workflows] == [flow.workflow_id]
    assert seen == [[("price", "completed", 3)]]


def test_what_does_not_fit() -> None:
    with app.graph("order") as g:
        g.add(price, "tea")
        with pytest.raises(errors.InvalidWorkflow, match="the outcomes of all tasks"):
            g.on_exit(strange)  # type: ignore[arg-type]
        g.on_exit(report, "one")
        with pytest.raises(errors.InvalidWorkflow, match="one task that runs at its end"):
            g.on_exit(report, "two")
    shape = price.prepare("tea").on_exit(report, "one")
    with pytest.raises(errors.InvalidWorkflow, match="one task that runs at its end"):
        shape.on_exit(report, "two")
    with pytest.raises(errors.InvalidWorkflow, match="A part of a workflow"):
        gather(shape, price.prepare("milk"))
    with pytest.raises(errors.InvalidWorkflow, match="on_failure is continue or cancel"):
        app.graph("order", on_failure="stop")
    with pytest.raises(errors.InvalidWorkflow, match="at most 999 tasks"), app.in_memory():
        app.submit_sync(price.map(["tea"] * 999).on_exit(report, "all"))
    with pytest.raises(errors.InvalidFilter, match="The states of a workflow are"):
        app.workflows_sync(state="gone")
