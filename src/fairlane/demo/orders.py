"""The orders of the shop: each is a workflow of several tasks."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from fairlane import Fail, Failed, Fairlane, WorkflowHandle
from fairlane.demo.pretending import QUICK_RETRIES, busy, happens

ARTICLES: Final = ("tea", "kettle", "cup", "honey", "filter", "tin", "strainer", "saucer")
SMALL: Final = (1, 6)
"""How many articles people order."""
WHOLESALE: Final = (40, 80)
WHOLESALE_SHARE: Final = 0.05


@dataclass
class Order:
    number: int
    articles: list[str]


async def submit_order(app: Fairlane, *, wholesale: bool | None = None) -> WorkflowHandle[Any]:
    """Submit an order of random articles."""
    large = happens(WHOLESALE_SHARE) if wholesale is None else wholesale
    number = random.randrange(10_000, 99_999)
    articles = random.choices(ARTICLES, k=random.randint(*(WHOLESALE if large else SMALL)))
    tags = {"order": str(number)}
    task = {name: each.options(tags=tags) for name, each in app.tasks.items()}
    with app.graph("wholesale order" if large else "order") as g:
        order = g.add(task["load_order"], number, articles)
        prices = [g.add(task["price_line"], order.articles[line]) for line in range(len(articles))]
        total = g.add(task["add_up"], prices)
        reserved = g.add(task["reserve_stock"], order)
        paid = g.add(task["charge_order"].options(after=[reserved]), order, total)
        parcel = g.add(task["ship_order"].options(after=[paid]), order)
        told = task["tell_customer"].options(on_parent_failure="continue")
        g.returns(g.add(told, paid, parcel))
    return await g.submit()


async def load_order(number: int, articles: list[str]) -> Order:
    """Read an order from the database."""
    await busy(0.05, 0.3)
    return Order(number, articles)


async def price_line(article: str) -> int:
    """Ask for the price of an article, in cents. The price list is sometimes unreachable."""
    await busy(0.2, 1.5)
    if happens(0.03):
        raise ConnectionError("The price list did not answer within 2 s")
    return len(article) * 250


async def add_up(prices: Sequence[int]) -> int:
    """Add up the prices."""
    return sum(prices)


async def reserve_stock(order: Order) -> int:
    """Reserve the articles. Sometimes one of them is sold out, which a retry does not change."""
    await busy(0.3, 2.0)
    if happens(0.04):
        raise Fail(f"{random.choice(order.articles)} is sold out.", code="sold_out")
    return len(order.articles)


async def charge_order(order: Order, total: int) -> str:
    """Charge the customer's card. Some are declined."""
    await busy(0.4, 1.2)
    if happens(0.1):
        raise Fail(f"The card for order {order.number} was declined.", code="card_declined")
    return f"{total / 100:.2f} EUR"


async def ship_order(order: Order) -> str:
    """Hand the parcel over."""
    await busy(0.5, 2.5)
    return f"parcel-{order.number}"


async def tell_customer(paid: str | Failed, parcel: str | Failed) -> str:
    """Write to the customer, whatever became of the order."""
    await busy(0.05, 0.3)
    if isinstance(paid, Failed):
        return f"We are sorry: {paid.message}"
    if isinstance(parcel, Failed):
        return f"You have paid {paid}; your parcel is late."
    return f"You have paid {paid}; {parcel} is on its way."


ORDER_TASKS: Final[dict[Any, dict[str, Any]]] = {
    load_order: {"queue": "orders", "priority": "high"},
    price_line: {"queue": "orders", "retry": QUICK_RETRIES, "concurrency": 8},
    add_up: {"queue": "orders", "priority": "high"},
    reserve_stock: {"queue": "stock", "priority": "high"},
    charge_order: {"queue": "payments", "priority": "critical", "max_retries": 0},
    ship_order: {"queue": "orders"},
    tell_customer: {"queue": "mail", "retry": QUICK_RETRIES},
}
