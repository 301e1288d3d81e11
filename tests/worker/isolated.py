"""An application whose tasks run in processes of their own, as children import it."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

from fairlane import GIVEN, Context, Fail, Failed, Fairlane, Retry, RetryPolicy, Shared, Snooze

TARGET = "tests.worker.isolated:app"

app = Fairlane("sqlite://")


@app.lifespan
@asynccontextmanager
async def up() -> AsyncIterator[Mapping[str, Any]]:
    if os.environ.get("ONLY_UP_IN", str(os.getpid())) != str(os.getpid()):
        raise ConnectionError("no database here")
    yield {"origin": os.getpid()}


@app.task(isolation="process")
def double(n: int) -> dict[str, int]:
    return {"doubled": 2 * n, "pid": os.getpid()}


class Hex:
    """Bytes as text."""

    def encode(self, value: Any) -> Any:
        return value.hex() if isinstance(value, bytes) else {n: v.hex() for n, v in value.items()}

    def decode(self, value: Any) -> Any:
        if isinstance(value, str):
            return bytes.fromhex(value)
        return {name: bytes.fromhex(each) for name, each in value.items()}


app.codec("hex", Hex())


@app.task(isolation="process", codec="hex")
def reverse(image: bytes) -> bytes:
    return image[::-1]


@app.task(isolation="process")
def collect(label: str, numbers: list[int | Failed]) -> list[Any]:
    return [label, *numbers, os.getpid()]


@app.task(isolation="process")
def has_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@app.task(isolation="process")
async def double_async(
    ctx: Context, n: int, origin: Annotated[int, Shared("origin")] = GIVEN
) -> Any:
    return [2 * n, ctx.attempt, origin == os.getpid()]


@app.task(isolation="process", max_retries=0)
def end(how: str) -> None:
    match how:
        case "abort":
            os.abort()
        case "segfault":
            ctypes.string_at(0)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "system-exit":
            sys.exit(3)
        case "fork":
            if os.fork() == 0:  # keeps the line to the worker open
                time.sleep(5)
                os._exit(0)
            os._exit(7)
        case "close":
            # Shut down, not closed: what a thread is waiting on stays open until it wakes up.
            for number in range(3, 256):
                with suppress(OSError):
                    socket.socket(fileno=number).shutdown(socket.SHUT_WR)
            time.sleep(60)
        case "babble":
            for number in range(3, 256):
                with suppress(OSError):
                    socket.socket(fileno=number).send(b"\0\0\0\1\xc1")
            time.sleep(60)
        case code:
            os._exit(int(code.removeprefix("exit-")))


@app.task(isolation="process", max_retries=1, retry=RetryPolicy(base=1000.0))
def fail(how: str) -> Any:
    match how:
        case "value":
            raise ValueError("wrong \ud800")
        case "retry":
            raise Retry("again", after=60)
        case "snooze":
            raise Snooze(60)
        case "fail":
            raise Fail("never", code="NO")
        case "result":
            return object()


@app.task(isolation="process", timeout=0.5, max_retries=0)
def spin(folder: str) -> None:
    child = subprocess.Popen(["sleep", "60"])
    pids = Path(folder, "pids.new")
    pids.write_text(f"{os.getpid()} {child.pid}")
    pids.rename(Path(folder, "pids"))
    while True:
        pass


@app.task(isolation="process", timeout=None)
def wait_for(ctx: Context, folder: str) -> str:
    Path(folder, "pid").write_text(str(os.getpid()))
    ctx.progress(40, "waiting")
    while not Path(folder, "go").exists():
        threading.Event().wait(0.01)
    return "gone on"


@app.task(isolation="process", memory_limit=64 * 1024**2, max_retries=0)
def gather(megabytes: int) -> dict[str, int]:
    held = bytearray(megabytes * 1024**2)
    return {"bytes": len(held), "pid": os.getpid()}


@app.task(isolation="process")
def tell(text: str) -> int:
    logger = logging.getLogger("shop.tell")
    logger.debug("not of interest")
    logger.info("%s \ud800", text)
    try:
        int("no luck")
    except ValueError:
        logger.exception("it went wrong")
    return os.getpid()


@app.task(isolation="process")
async def where(ctx: Context) -> str:
    """The store that submissions of a child would go to."""
    return app.url


@app.task(isolation="process")
def tick_of(ctx: Context) -> str:
    tick = ctx.scheduled_for
    return "None" if tick is None else f"{tick} {tick.tzinfo}"
