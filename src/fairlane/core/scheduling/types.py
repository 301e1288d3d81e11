"""Types of tasks that somebody handles: a schedule of another one would submit tasks that wait."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final, Protocol

from fairlane.core.definitions import published_types, recent_types
from fairlane.core.documents import Documents
from fairlane.core.errors import UnknownType
from fairlane.core.facts import Facts
from fairlane.core.flow import Flow, Op
from fairlane.core.model import WorkerStatus
from fairlane.core.schedules import NewSchedule, Schedule

BUILT_IN: Final = frozenset({"echo", "sleep", "webhook", "email"})
"""The types of the handlers in this package, which a worker without an application runs."""
NAMED: Final = 3
"""How many similar names an error names."""
_SIMILAR: Final = 0.7


class Handled(Documents, Protocol):
    """A store whose workers are known."""

    def facts(self) -> Op[Facts]: ...


def check_types(
    self: Handled, schedules: Sequence[NewSchedule], before: Sequence[Schedule | None]
) -> Flow[None]:
    """Raise UnknownType if nobody handles the type of a schedule that is new, or has another type
    than before.

    A type counts if a worker has published its definition or lives and takes such tasks. A worker
    that starts later makes no difference, so nothing guards against it.
    """
    changed = (
        new.template.type
        for new, old in zip(schedules, before, strict=True)
        if old is None or old.template.type != new.template.type
    )
    asked = [each for each in dict.fromkeys(changed) if each not in BUILT_IN]
    if not asked:
        return
    published = yield from published_types(self, asked)
    missing = [each for each in asked if each not in published]
    if not missing:
        return
    workers = (yield from self.facts().flow()).workers
    alive = [each for each in workers if each.status is not WorkerStatus.DEAD and not each.lost]
    if any(each.types is None for each in alive):
        return
    handled = {type for each in alive for type in each.types or ()}
    unknown = [each for each in missing if each not in handled]
    if unknown:
        names = yield from recent_types(self)
        raise _unknown(unknown[0], {*names, *handled, *BUILT_IN})


def _unknown(type: str, names: Iterable[str]) -> UnknownType:
    near = get_close_matches(type, sorted(names), NAMED, _SIMILAR)
    meant = f"Did you mean {' or '.join(near)}? Otherwise start" if near else "Start"
    return UnknownType(
        f"No worker has published the task type {type}, and none that runs handles it. {meant} a "
        "worker that has it. If its workers come later, allow the type: allow_unknown_type, or "
        "--allow-unknown-type.",
        similar=tuple(near),
    )
