"""The shop of `fairlane up --demo`: its orders, when all goes well and when something fails."""

from __future__ import annotations

import pytest

from fairlane import Fairlane
from fairlane.core.states import State
from fairlane.core.workflows import Workflow, WorkflowState
from fairlane.demo import orders
from fairlane.demo.shop import add_shop


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no task take time."""

    async def busy(least: float, most: float) -> None:
        assert least <= most

    monkeypatch.setattr(orders, "busy", busy)


async def ordered(monkeypatch: pytest.MonkeyPatch, drawn: float, *, wholesale: bool) -> Workflow:
    """Order in a shop where everything happens that does so more often than `drawn`."""
    monkeypatch.setattr(orders, "happens", lambda share: share > drawn)
    shop = Fairlane()
    add_shop(shop)
    with shop.inline():
        found = await (await orders.submit_order(shop, wholesale=wholesale)).state()
    assert found is not None
    return found


@pytest.mark.parametrize("wholesale", [False, True])
async def test_an_order(monkeypatch: pytest.MonkeyPatch, *, wholesale: bool) -> None:
    done = await ordered(monkeypatch, 1.0, wholesale=wholesale)
    assert done.name == ("wholesale order" if wholesale else "order")
    assert done.state is WorkflowState.COMPLETED
    lines = [node for node in done.nodes if node.type == "price_line"]
    least, most = orders.WHOLESALE if wholesale else orders.SMALL
    assert least <= len(lines) <= most
    (told,) = [node for node in done.nodes if node.answers]
    assert told.type == "tell_customer"


async def test_the_customer_is_told_what_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = await ordered(monkeypatch, 0.09, wholesale=False)
    states = {node.type: node.state for node in failed.nodes}
    assert states["charge_order"] is State.FAILED
    assert states["ship_order"] is State.CANCELLED
    assert states["tell_customer"] is State.COMPLETED
    assert failed.state is WorkflowState.FAILED
