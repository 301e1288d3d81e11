"""Finds out what blocks the event loop, from a thread of its own.

A handler that blocks (`time.sleep`, a database driver without asyncio, a long computation) stops
every other task of the worker. Afterwards nobody can tell which one it was, so a thread looks while
it happens: it reads the stack of the event loop's thread.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

import fairlane
from fairlane.telemetry.logs import FIELDS
from fairlane.telemetry.repeats import Repeats
from fairlane.worker.runs import CurrentRun

logger = logging.getLogger("fairlane.worker")

LOOK_SECONDS = 0.25
BLOCKED_SECONDS = 1.0
"""The event loop may be late by so much before something is logged."""
REPEAT_SECONDS: Final = 60.0
"""What blocks at the same place is logged once in this time, then counted."""
LONG_SECONDS: Final = 5.0
"""A run that has blocked for longer is logged a second time when it ends, with the whole time."""

_LIBRARIES: Final = tuple(
    str(Path(folder)) + "/"
    for folder in {*sysconfig.get_paths().values(), str(Path(fairlane.__file__).parent)}
)
_ASYNCIO: Final = str(Path(asyncio.__file__).parent) + "/"
_LOOP_FUNCTIONS: Final = frozenset({"_run", "_run_once", "run_forever", "run"})

Kind = tuple[str | None, str]
"""The type of the task that blocks, and the place in the code."""


class LoopWatch:
    """Looks every quarter of a second whether the event loop is late, and logs what it executes.

    `late` returns by how many seconds the loop is late, `runs` the runs of the worker.
    """

    def __init__(self, late: Callable[[], float], runs: Callable[[], Iterable[CurrentRun]]) -> None:
        self._late = late
        self._runs = runs
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._repeats: Repeats[Kind] = Repeats(most=1, seconds=REPEAT_SECONDS)
        self._reported = False
        """Whether the present block has been logged or counted."""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="fairlane-loop", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait for the thread."""
        self._stopped.set()
        self._thread.join()
        self._summarise(all=True)

    def _watch(self) -> None:
        while True:
            began, spent = time.monotonic(), time.process_time()
            if self._stopped.wait(LOOK_SECONDS):
                return
            lost = time.monotonic() - began - LOOK_SECONDS
            if lost > BLOCKED_SECONDS and time.process_time() - spent < lost / 2:
                continue  # the whole process was suspended: the loop will catch up
            self._look()
            self._summarise()

    def _look(self) -> None:
        late = self._late()
        if late < BLOCKED_SECONDS:
            self._reported = False
            return
        frame = sys._current_frames().get(self._loop_thread)
        current = asyncio.current_task(self._loop)
        run = next((each for each in self._runs() if each.consumer is current), None)
        if run is not None:
            run.blocked = max(run.blocked, late)
        if self._reported or frame is None:
            return
        found = blocking_frame(frame)
        if found is None:
            return  # the loop waits for the processor
        self._reported = True
        place = f"{found.f_code.co_filename}:{found.f_lineno}"
        if self._repeats.passes((None if run is None else run.task.type, place)):
            _warn(run, late, f"{place} in {found.f_code.co_name}")

    def _summarise(self, *, all: bool = False) -> None:
        for kind, count, seconds in self._repeats.take_ended(all=all):
            like = "at further places" if kind is None else f"at {kind[1]}"
            logger.warning(
                "… and the event loop was blocked %d times more %s in the last %.0f s",
                count,
                like,
                seconds,
            )


def _warn(run: CurrentRun | None, late: float, place: str) -> None:
    fields: dict[str, object] = {"seconds": round(late, 3), "place": place}
    what = "The event loop is blocked"
    if run is not None:
        fields |= {"type": run.task.type, "task_id": run.task.task_id}
        what = f"{run.task.type} {run.task.task_id} blocks the event loop"
    logger.warning(
        "%s: for %.1f s so far, at %s. No other task of this worker runs meanwhile: await what "
        "waits, or define the handler with def instead of async def, so that it runs in a thread.",
        what,
        late,
        place,
        extra={FIELDS: fields},
    )


def warn_of_end(run: CurrentRun) -> None:
    """Log for how long a run that has ended blocked the event loop, if that was long."""
    limit = run.task.timeout
    passed = limit is not None and run.seconds > limit
    if passed or run.blocked > LONG_SECONDS:
        logger.warning(
            "%s %s blocked the event loop for %.1f s%s",
            run.task.type,
            run.task.task_id,
            run.blocked,
            f", its time limit of {limit:g} s passed meanwhile" if passed else "",
        )


def blocking_frame(frame: FrameType) -> FrameType | None:
    """Return what the event loop executes: the innermost frame of the application, or of a library
    if there is none. None if it executes nothing."""
    innermost = frame
    each: FrameType | None = frame
    while each is not None and not _is_loop(each.f_code):
        if not each.f_code.co_filename.startswith(_LIBRARIES):
            return each
        each = each.f_back
    idle = _is_loop(innermost.f_code) or innermost.f_code.co_name == "select"
    return None if idle else innermost


def _is_loop(code: CodeType) -> bool:
    return code.co_name in _LOOP_FUNCTIONS and code.co_filename.startswith(_ASYNCIO)
