"""Types that workers hold back: they serve them, but the handlers hang in their threads.

A worker lists them in the health that it reports with its heartbeats. Every engine stores that, and
a worker in any language may say the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from fairlane.core import limits
from fairlane.core.lanes import Needs, serves
from fairlane.core.model import Worker, WorkerStatus
from fairlane.core.text import is_name

IN_HEALTH: Final = "held_back"
"""The field of a worker's health that lists the types."""


def listed(types: Iterable[str]) -> list[str]:
    """Return the types as a worker's health lists them: by name, as many as there is room for."""
    room = limits.HELD_BACK_BYTES
    names: list[str] = []
    for name in sorted(types):
        room -= len(name) + len('"",')
        if room < 0:
            break
        names.append(name)
    return names


def held_back(worker: Worker) -> frozenset[str]:
    """Return the types that a worker holds back. Anything but a list of names lists none."""
    told = None if worker.health is None else worker.health.get(IN_HEALTH)
    return frozenset(filter(is_name, told)) if isinstance(told, list) else frozenset()


def takes(worker: Worker, task: Needs) -> bool:
    """Return whether a worker serves such tasks, and does not hold them back."""
    return serves(worker, task) and task.type not in held_back(worker)


def holders(workers: Iterable[Worker]) -> Counter[str]:
    """Return the types that living workers hold back, with the number of these workers."""
    return Counter(
        type
        for worker in workers
        if worker.status is not WorkerStatus.DEAD and not worker.lost
        for type in held_back(worker)
    )
