"""What the worker behind the dashboard can do. Any other type waits: nobody serves it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Literal

from fairlane import Context, Fail, Fairlane

app = Fairlane()  # the store is named on the command line


@app.task
async def greet(name: str = "you") -> dict[str, str]:
    """Succeeds at once."""
    return {"hello": name}


@app.task
async def echo(value: Any = None) -> Any:
    """Gives back what it was given."""
    return value


@app.task(queue="orders", priority="high", max_retries=7, timeout=45, tags={"team": "shop"})
async def order(
    customer: str,
    quantity: int,
    express: bool = False,
    size: Literal["small", "large"] = "small",
    price: float | None = None,
    lines: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Gives back what was ordered."""
    return {
        "customer": customer,
        "quantity": quantity,
        "express": express,
        "size": size,
        "price": price,
        "lines": lines,
    }


@app.task
async def fail(message: str = "It broke.") -> None:
    """Fails whenever it runs."""
    raise ValueError(message)


@app.task
async def refuse(message: str = "Not with me.") -> None:
    """Fails for good: no retry would help."""
    raise Fail(message, code="refused")


@app.task
async def flaky(ctx: Context, failures: int = 1) -> int:
    """Fails in its first runs: with `max_retries=0` it succeeds once somebody retries it."""
    if ctx.attempt <= failures:
        raise ConnectionError(f"Not on attempt {ctx.attempt}.")
    return ctx.attempt


@app.task(timeout=None)
async def hold(
    ctx: Context, file: str, percent: float | None = None, message: str | None = None
) -> str:
    """Tells how far it is, if it was told to, and runs until there is a file (`site.release`)."""
    if percent is not None or message is not None:
        ctx.progress(percent, message)
    while not Path(file).exists():  # noqa: ASYNC110 (the test is another process)
        await asyncio.sleep(0.02)
    return "released"
