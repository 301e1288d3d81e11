"""The application whose workers are killed, stopped and cut off. Its handlers write a history."""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import msgspec

from fairlane import Context, Fail, Fairlane, RetryPolicy
from tests.e2e.history.lines import End, Recorder, Start, Took, digest

TARGET = "tests.e2e.chaos.app:app"
HISTORY = "CHAOS_HISTORY"
"""The variable that says where to write it."""
LOOK_SECONDS = 0.02
STORED_SECONDS = 0.5
MEMORY_LIMIT = 256 * 1024**2

app = Fairlane("sqlite://")
recorder = Recorder(Path(os.environ.get(HISTORY, os.devnull)))


class Diary:
    """What a run tells of itself."""

    def __init__(self, ctx: Context) -> None:
        self._who: dict[str, Any] = {
            "task": ctx.task_id,
            "attempt": ctx.attempt,
            "worker": ctx.task.worker_id,
            "pid": os.getpid(),
        }
        recorder.write(Start, **self._who)

    def took(self, value: Any) -> None:
        """What it was given of its parents."""
        recorder.write(Took, value=msgspec.to_builtins(value), **self._who)

    def end(self, result: Any) -> Any:
        """The last thing before a handler returns."""
        recorder.write(End, result=digest(msgspec.json.encode(result)), **self._who)
        return result

    def fail(self, times: int) -> None:
        """Raise, on the first so many attempts."""
        if self._who["attempt"] <= times:
            recorder.write(End, **self._who)
            raise RuntimeError("as asked")


def closed(ctx: Context, gate: str | None) -> bool:
    """Every attempt has a gate of its own."""
    return gate is not None and not Path(f"{gate}-{ctx.attempt}").exists()


def blocking(ctx: Context, n: int, seconds: float, fails: int, gate: str | None) -> int:
    diary = Diary(ctx)
    time.sleep(seconds)
    while closed(ctx, gate):
        time.sleep(LOOK_SECONDS)
    diary.fail(fails)
    return int(diary.end(n))


@app.task(name="on-loop")
async def on_loop(
    ctx: Context, n: int, seconds: float = 0.0, fails: int = 0, gate: str | None = None
) -> int:
    diary = Diary(ctx)
    await asyncio.sleep(seconds)
    while closed(ctx, gate):  # noqa: ASYNC110 (it is opened by another process)
        await asyncio.sleep(LOOK_SECONDS)
    diary.fail(fails)
    return int(diary.end(n))


@app.task(name="on-thread")
def on_thread(
    ctx: Context, n: int, seconds: float = 0.0, fails: int = 0, gate: str | None = None
) -> int:
    return blocking(ctx, n, seconds, fails, gate)


@app.task(name="in-process", isolation="process")
def in_process(
    ctx: Context, n: int, seconds: float = 0.0, fails: int = 0, gate: str | None = None
) -> int:
    return blocking(ctx, n, seconds, fails, gate)


@app.task(name="node", max_retries=5, retry=RetryPolicy(base=0.05, cap=0.5))
async def node(
    ctx: Context,
    got: Any = None,
    *,
    n: int,
    seconds: float = 0.0,
    fails: int = 0,
    bad: bool = False,
) -> Any:
    """Of a workflow: its result says whose it is. `bad`: it fails for good."""
    diary = Diary(ctx)
    if ctx.task.spec.inputs:
        diary.took(got)
    await asyncio.sleep(seconds)
    diary.fail(fails)
    result = diary.end([ctx.task_id, ctx.attempt])
    if bad:
        raise Fail("as asked")
    return result


@app.task(name="on-tick")
async def on_tick(ctx: Context) -> int | None:
    """Of a schedule: its result is the tick."""
    diary = Diary(ctx)
    tick = ctx.task.spec.tick
    diary.end(tick)
    return tick


@app.task(name="in-transaction")
async def in_transaction(ctx: Context, n: int, seconds: float = 0.0, fails: int = 0) -> None:
    """Leaves an effect and completes, or neither. Its end is told before either is known."""
    diary = Diary(ctx)
    diary.fail(fails)
    async with ctx.transaction() as connection:
        if app.url.startswith("sqlite"):
            connection.execute("INSERT INTO effects VALUES (?)", [ctx.task_id])
        else:
            await connection.execute("INSERT INTO effects VALUES ($1)", ctx.task_id)
        await asyncio.sleep(seconds)
        diary.end(None)


def block(seconds: float, locked: int | None = None) -> None:
    """Keep the interpreter's lock for so long, but give back the lock of a file."""
    libc = ctypes.PyDLL(None)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(seconds)  # no other thread runs between the two calls
    if locked is not None:
        libc.flock(locked, fcntl.LOCK_UN)
    libc.usleep(int(seconds * 1_000_000))
    sys.setswitchinterval(interval)


@app.task(name="hog")
def hog(ctx: Context, n: int, seconds: float) -> int:
    """Keep the interpreter's lock, as a regular expression that backtracks does."""
    diary = Diary(ctx)
    time.sleep(STORED_SECONDS)  # until the start is stored
    if app.url.startswith("sqlite"):
        # A process that is blocked while it writes keeps the file's lock, too, and everybody waits:
        # docs/engines.md says so. So block while nobody writes.
        with lock_file().open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            block(seconds, file.fileno())
    else:
        block(seconds)
    return int(diary.end(n))


@app.task(name="hog-in-a-write")
def hog_in_a_write(ctx: Context, n: int, seconds: float) -> int:
    """Keep both locks, in the first attempt, like a hog that begins while its worker writes."""
    diary = Diary(ctx)
    if ctx.attempt == 1:
        with lock_file().open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            block(seconds)
    return int(diary.end(n))


def lock_file() -> Path:
    found = app.backend.driver.lock_file
    assert found is not None
    return Path(found)


def end(how: str) -> None:
    """End the process, in one of many ways. `exit-<code>` is an exit code."""
    match how.partition("-"):
        case ("exit", _, code):
            os._exit(int(code))
        case ("segfault", _, _):
            ctypes.string_at(0)
        case ("kill", _, _):
            os.kill(os.getpid(), signal.SIGKILL)
        case ("abort", _, _):
            os.abort()
        case ("thread", _, _):
            threading.Thread(target=os._exit, args=[0]).start()
            signal.pause()
        case ("fork", _, _):
            os.fork()
            os._exit(0)


@app.task(name="deadly-on-loop")
async def deadly_on_loop(ctx: Context, n: int, how: str) -> None:
    Diary(ctx)
    end(how)


@app.task(name="deadly-on-thread")
def deadly_on_thread(ctx: Context, n: int, how: str) -> None:
    Diary(ctx)
    end(how)


@app.task(name="poison", isolation="process", memory_limit=MEMORY_LIMIT)
def poison(ctx: Context, n: int, how: str) -> None:
    Diary(ctx)
    match how:
        case "worker":  # not only itself: the worker too
            os.kill(os.getppid(), signal.SIGKILL)
            signal.pause()
        case "loop":
            while True:
                pass
        case "memory":
            hoard: list[bytearray] = []
            while True:
                hoard.append(bytearray(MEMORY_LIMIT // 16))
        case _:
            end(how)
