"""A few tasks to look at, for a store that has none: one of each kind of life."""

from __future__ import annotations

from fairlane.core.ids import new_ids
from fairlane.core.model import NewTask
from fairlane.core.submission import new_task

_TAGS = {"sample": "yes"}


def samples() -> list[NewTask]:
    """Tasks for the built-in handlers."""
    first, then = new_ids(2)
    return [
        new_task("echo", {"say": "hello"}, tags=_TAGS),
        *(new_task("sleep", {"seconds": 3 * n}, priority="low", tags=_TAGS) for n in (1, 2, 3)),
        new_task("sleep", {"seconds": 5}, task_id=first, tags=_TAGS),
        new_task("echo", {"say": "I waited"}, task_id=then, depends_on=[first], tags=_TAGS),
        new_task("echo", {"say": "I am due in a minute"}, delay_seconds=60, tags=_TAGS),
        new_task("sleep", {"seconds": "how long?"}, tags=_TAGS),  # which fails, and says why
        new_task("echo", {"say": "I came last and ran first"}, priority="critical", tags=_TAGS),
    ]
