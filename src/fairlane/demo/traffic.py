"""The load of the shop: a rush at first, then waves of tasks."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from fairlane import Fairlane, Prepared, StoreError
from fairlane.demo.orders import submit_order
from fairlane.demo.shop import add_newsletter

RUSH: Final = 240
PER_SECOND: Final = 12.0
WAVE_SECONDS: Final = 90.0
"""The time between two peaks."""
ORDER_SECONDS: Final = 7.0
"""The mean time between two orders."""
AWAY_SECONDS: Final = 1.0

REGIONS: Final = ("eu", "us", "apac")
WAREHOUSES: Final = ("rotterdam", "lisbon", "osaka", "austin")
TEMPLATES: Final = ("order-confirmation", "shipped", "password-reset", "newsletter")
EVENTS: Final = ("order.paid", "order.shipped", "refund.created")


async def traffic(app: Fairlane) -> None:
    """Submit tasks until cancelled."""
    await _persist(partial(app.submit_many, [_task(app) for _ in range(RUSH)]))
    await _persist(partial(add_newsletter, app))
    async with asyncio.TaskGroup() as customers:
        customers.create_task(_orders(app))
        customers.create_task(_waves(app))


async def _orders(app: Fairlane) -> None:
    """Submit orders: a large one first."""
    await _persist(partial(submit_order, app, wholesale=True))
    while True:
        await _persist(partial(submit_order, app))
        await asyncio.sleep(random.expovariate(1 / ORDER_SECONDS))


async def _waves(app: Fairlane) -> None:
    """Submit single tasks, more and then fewer."""
    began = time.monotonic()
    while True:
        wave = 1 + 0.8 * math.sin(math.tau * (time.monotonic() - began) / WAVE_SECONDS)
        await asyncio.sleep(random.expovariate(PER_SECOND * wave + 0.5))
        await _persist(partial(app.submit, _task(app)))


async def _persist(attempt: Callable[[], Awaitable[object]]) -> None:
    """Try something, and again for as long as the store is unavailable."""
    while True:
        try:
            await attempt()
        except StoreError:
            await asyncio.sleep(AWAY_SECONDS)
        else:
            return


def _task(app: Fairlane) -> Prepared[Any]:
    (kind,) = random.choices(list(_SHARES), weights=list(_SHARES.values()))
    return kind(app)


def _email(app: Fairlane) -> Prepared[Any]:
    customer = random.randrange(1_000, 9_999)
    to = f"customer{customer}@mail.example"
    tags = {"customer": str(customer), "region": random.choice(REGIONS)}
    return app.tasks["send_email"].options(tags=tags).prepare(to, random.choice(TEMPLATES))


def _charge(app: Fairlane) -> Prepared[Any]:
    order = random.randrange(10_000, 99_999)
    task = app.tasks["charge_card"].options(
        tags={"order": str(order), "region": random.choice(REGIONS)}
    )
    return task.prepare(order, round(random.uniform(5, 400), 2), random.choice(["EUR", "USD"]))


def _image(app: Fairlane) -> Prepared[Any]:
    path = f"products/{random.randrange(1, 800)}"
    return app.tasks["resize_image"].prepare(path, [320, 640, 1280, 2560])


def _sync(app: Fairlane) -> Prepared[Any]:
    warehouse = random.choice(WAREHOUSES)
    later = random.choice([0, 0, 30, 120])
    task = app.tasks["sync_inventory"].options(tags={"warehouse": warehouse}, delay_seconds=later)
    return task.prepare(warehouse)


def _webhook(app: Fairlane) -> Prepared[Any]:
    url = f"https://partner{random.randrange(1, 9)}.example/hooks"
    return app.tasks["deliver_webhook"].prepare(url, random.choice(EVENTS))


def _report(app: Fairlane) -> Prepared[Any]:
    return app.tasks["build_report"].prepare(f"2026-{random.randrange(1, 12):02}")


def _video(app: Fairlane) -> Prepared[Any]:
    return app.tasks["render_video"].prepare(random.randrange(10_000, 99_999))


_SHARES: Final[dict[Callable[[Fairlane], Prepared[Any]], float]] = {
    _email: 40,
    _charge: 18,
    _webhook: 18,
    _image: 12,
    _sync: 8,
    _report: 1,
    _video: 0.3,
}
