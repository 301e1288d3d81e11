"""What handlers leave behind for whoever measures: how many ran, and when the first ones began.

Each worker process has a small file of its own, mapped into memory: to make a mark costs less than
a microsecond and nothing of the store, and it can be read while the worker runs. Clocks of two
processes agree, because CLOCK_MONOTONIC is the machine's.
"""

from __future__ import annotations

import mmap
import os
import threading
import time
from pathlib import Path

FOLDER = "FAIRLANE_BENCH_MARKS"
"""The variable in the environment that says where the files are."""
STARTS = 4_000
"""So many starts are noted by each process."""
_HEAD = 2
_SIZE = 8 * (_HEAD + STARTS)


class Marks:
    """Those of this process; nothing is written until the first handler runs."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._memory = resident(os.getpid())
        self._slots: memoryview | None = None
        os.register_at_fork(after_in_child=self._begin_anew)

    def made(self) -> None:
        """A handler has begun."""
        with self._guard:
            slots = self._slots
            if slots is None:
                slots = self._slots = self._opened()
            count = slots[0]
            if count < STARTS:
                slots[_HEAD + count] = time.monotonic_ns()
            slots[0] = count + 1

    def _begin_anew(self) -> None:
        self._guard, self._slots = threading.Lock(), None

    def _opened(self) -> memoryview:
        path = Path(os.environ[FOLDER]) / str(os.getpid())
        with path.open("x+b") as file:
            file.truncate(_SIZE)
            slots = memoryview(mmap.mmap(file.fileno(), _SIZE)).cast("Q")
        slots[1] = self._memory
        return slots


class Seen:
    """The marks of all worker processes, seen from outside."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._maps: dict[str, memoryview] = {}

    def count(self) -> int:
        """How many handlers have begun."""
        return sum(slots[0] for slots in self._all())

    def starts(self) -> list[int]:
        """When, in nanoseconds of the monotonic clock."""
        return sorted(
            start for slots in self._all() for start in slots[_HEAD : _HEAD + min(slots[0], STARTS)]
        )

    def memory(self) -> dict[int, int]:
        """Bytes that each worker process had resident when it had imported everything."""
        self._all()
        return {int(pid): slots[1] for pid, slots in self._maps.items()}

    def _all(self) -> list[memoryview]:
        for path in self._folder.iterdir():
            if path.name not in self._maps and path.stat().st_size == _SIZE:
                with path.open("rb") as file:
                    mapped = mmap.mmap(file.fileno(), _SIZE, prot=mmap.PROT_READ)
                self._maps[path.name] = memoryview(mapped).cast("Q")
        return list(self._maps.values())


def resident(pid: int) -> int:
    """Bytes of memory that a process has."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def cpu_seconds(pid: int) -> float:
    """How long a process has kept a core busy."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
