"""An application whose handlers fork, each in its own way. The child writes its id to a file."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from fairlane import Fairlane

TARGET = "tests.worker.forking:app"

app = Fairlane("sqlite://")


def forked(folder: str) -> bool:
    """Fork, and return whether this is the child."""
    if os.fork():
        return False
    Path(folder, "child.new").write_text(str(os.getpid()))
    Path(folder, "child.new").rename(Path(folder, "child"))
    return True


@app.task(max_retries=0)
async def on_loop(folder: str) -> str:
    return "child" if forked(folder) else "parent"


@app.task(max_retries=0)
async def on_loop_waiting(folder: str) -> str:
    loop = asyncio.get_running_loop()
    if forked(folder):
        await loop.create_future()  # back to the loop, which is the worker's
    return "parent"


@app.task(max_retries=0)
async def on_loop_in_a_task(folder: str) -> str:
    async def forking() -> str:
        return "child" if forked(folder) else "parent"

    return await asyncio.create_task(forking())


@app.task(max_retries=0)
def on_thread(folder: str) -> str:
    return "child" if forked(folder) else "parent"


@app.task(max_retries=0)
def on_thread_raising(folder: str) -> str:
    if forked(folder):
        raise ValueError("child")
    return "parent"


@app.task(max_retries=0)
def on_thread_exiting(folder: str) -> str:
    if forked(folder):
        sys.exit(0)
    return "parent"


@app.task(max_retries=0, isolation="process")
def in_process(folder: str) -> str:
    return "child" if forked(folder) else "parent"


@app.task(max_retries=0, isolation="process")
async def in_process_waiting(folder: str) -> str:
    loop = asyncio.get_running_loop()
    if forked(folder):
        await loop.create_future()
    return "parent"


@app.task(max_retries=0)
def allowed(folder: str) -> int:
    """What is allowed: the child does its own work, and ends by itself."""
    child = os.fork()
    if not child:
        time.sleep(0.1)
        os._exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def profiled() -> bool:
    return sys.getprofile() is not None


@app.task(max_retries=0)
async def in_a_pool() -> bool:
    """What is allowed, too. Return whether the child is slowed down."""
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        return await asyncio.get_running_loop().run_in_executor(pool, profiled)


@app.task()
async def double(n: int) -> int:
    await asyncio.sleep(0)
    return 2 * n
