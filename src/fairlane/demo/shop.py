"""The tasks of the shop. Their durations and failures are like those of real ones."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

from fairlane import Context, Fail, Fairlane
from fairlane.demo.orders import ORDER_TASKS
from fairlane.demo.pretending import QUICK_RETRIES, busy, happens

NEWSLETTER = "newsletter"


def add_shop(app: Fairlane) -> None:
    """Add the tasks and the schedules to an application."""
    app.name = "shop"
    for handler, options in (_TASKS | ORDER_TASKS).items():
        app.task(**options)(handler)
    tasks = app.tasks
    app.every(
        seconds=15,
        id="stock-lisbon",
        arguments={"warehouse": "lisbon"},
        note="Lisbon is often away: while a retry waits, ticks are skipped",
    )(tasks["sync_inventory"])
    app.every(
        minutes=1,
        offset=timedelta(seconds=10),
        id="partners",
        arguments={"url": "https://partner1.example/hooks", "event": "stock.changed"},
        overlap="allow",
        jitter=20,
    )(tasks["deliver_webhook"])
    app.cron(
        "30 2 * * MON-FRI",
        tz="Europe/Berlin",
        id="nightly-report",
        arguments={"month": "the last month"},
        missed="once",
        within=timedelta(hours=6),
        note="Every weekday at half past two in Berlin",
    )(tasks["build_report"])


async def add_newsletter(app: Fairlane) -> None:
    """Put a schedule into the store that somebody has paused, unless it is there already."""
    if await app.schedules.get(NEWSLETTER) is not None:
        return
    call = app.tasks["send_email"].prepare("all@mail.example", "newsletter")
    await app.schedules.put(NEWSLETTER, call, cron="*/2 * * * *", tz="America/New_York")
    await app.schedules.pause(NEWSLETTER, note="until the new text is there")


async def send_email(to: str, template: str) -> dict[str, str]:
    """Send a message. Sometimes the mail server is busy."""
    await busy(0.05, 0.4)
    if happens(0.04):
        raise ConnectionError("421 Too many connections, try again later")
    return {
        "message_id": f"{random.getrandbits(40):x}@shop.example",
        "template": template,
        "to": to,
    }


async def charge_card(order: int, amount: float, currency: str) -> dict[str, Any]:
    """Charge a card. Some are declined, which a retry does not change."""
    await busy(0.2, 0.9)
    if happens(0.05):
        raise Fail(f"The card for order {order} was declined.", code="card_declined")
    return {"order": order, "charged": amount, "currency": currency}


async def resize_image(ctx: Context, path: str, widths: list[int]) -> list[str]:
    """Make images of several widths, and report progress."""
    made = []
    for index, width in enumerate(widths):
        ctx.progress(100 * index / len(widths), f"{width} px")
        await busy(0.3, 1.0)
        made.append(f"{path}@{width}.webp")
    return made


async def sync_inventory(warehouse: str) -> int:
    """Ask a warehouse. They are sometimes unreachable, one of them most of the time."""
    await busy(0.1, 0.6)
    if happens(0.7 if warehouse == "lisbon" else 0.05):
        raise TimeoutError(f"The warehouse {warehouse} did not answer within 5 s")
    return random.randrange(10, 4_000)


async def build_report(ctx: Context, month: str) -> dict[str, Any]:
    """Build a report slowly, at low priority."""
    for percent in range(0, 100, 10):
        ctx.progress(percent, f"Adding up {month}")
        await busy(0.5, 2.0)
    return {"month": month, "orders": random.randrange(900, 9_000)}


async def deliver_webhook(url: str, event: str) -> int:
    """Deliver an event, within the rate limit of the type."""
    await busy(0.05, 0.5)
    if happens(0.06):
        raise ConnectionError(f"{url} answered 502 to {event}")
    return 200


async def render_video(order: int) -> None:
    """Need a graphics card, which no worker of the demo has: the tasks wait."""


_TASKS: dict[Any, dict[str, Any]] = {
    charge_card: {"queue": "payments", "priority": "critical", "max_retries": 2},
    send_email: {"queue": "mail", "retry": QUICK_RETRIES},
    resize_image: {"queue": "media", "concurrency": 6},
    sync_inventory: {"queue": "stock", "retry": QUICK_RETRIES, "max_retries": 2},
    build_report: {"queue": "reports", "priority": "low"},
    deliver_webhook: {
        "queue": "webhooks",
        "rate_limit": 3.0,
        "retry": QUICK_RETRIES,
        "priority": "high",
    },
    render_video: {"queue": "media", "required_capabilities": ["gpu"], "priority": "low"},
}
