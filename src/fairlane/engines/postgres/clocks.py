"""bring_back: times that lie ahead of now, because the clock was set back, are corrected."""

from __future__ import annotations

from fairlane.core import limits
from fairlane.core.clocks import STEP, Times, brought_back
from fairlane.core.flow import Flow, writes
from fairlane.core.model import Spec
from fairlane.engines.postgres.calls import WAKE, Query
from fairlane.engines.postgres.context import Context
from fairlane.engines.postgres.rows import array_of_ids
from fairlane.engines.postgres.statements import load

SQL = load("clocks")

_FIRST = (0, "00000000-0000-0000-0000-000000000000")


@writes
def bring_back(self: Context, cursor: str | None = None) -> Flow[str | None]:
    if not cursor:
        for name in ("workers", "buckets", "claims", "runs"):
            yield Query(SQL[name], (STEP,))
    ((queued,),) = yield Query(SQL["queued"], (STEP, limits.BATCH))
    if queued == limits.BATCH:
        return cursor or ""
    place = _FIRST
    if cursor:
        after, _, task_id = cursor.partition(" ")
        place = (int(after), task_id)
    waiting = yield Query(SQL["waiting"], (*place, limits.BATCH))
    changed = []
    for now, task_id, attempt, spec, *stored in waiting:
        dated = Spec.decode(spec).waits_for_date(attempt)
        before = Times._make(stored)
        times = brought_back(before, dated=dated, now=now)
        if times is not None:
            changed.append((str(task_id), before.updated_at, *times))
    if changed:
        ids, *columns = zip(*changed, strict=True)
        yield Query(SQL["redate"], (array_of_ids(ids), *map(list, columns)))
        yield WAKE  # who waits for the next due time waits for an earlier one now
    if len(waiting) < limits.BATCH:
        return None
    _, task_id, _, _, due_at, *_ = waiting[-1]
    return f"{due_at} {task_id}"
