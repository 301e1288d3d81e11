"""bring_back: times that lie ahead of now, because the clock was set back, are corrected."""

from __future__ import annotations

from fairlane.core import limits
from fairlane.core.clocks import STEP, Times, brought_back
from fairlane.core.flow import Flow, writes
from fairlane.core.model import Spec
from fairlane.engines.files import statements
from fairlane.engines.sqlite.calls import WAKE, Execute, ExecuteMany
from fairlane.engines.sqlite.context import Context

SQL = statements(__package__, "clocks")


@writes
def bring_back(self: Context, cursor: str | None = None) -> Flow[str | None]:
    now = self.clock()
    limit = now + STEP
    if not cursor:
        for name in ("workers", "buckets", "claims", "last_claims", "runs"):
            yield Execute(SQL[name], (now, limit))
    queued = (yield Execute(SQL["ready"], (limit, limits.BATCH))).fetchall()
    yield ExecuteMany(SQL["requeue"], [(now, *place) for _, *place in queued])
    yield ExecuteMany(SQL["note_ready"], [(now, number) for number, *_ in queued])
    if len(queued) == limits.BATCH:
        return cursor or ""
    place = tuple(map(int, cursor.split())) if cursor else (limit, 0)
    waiting = (yield Execute(SQL["waiting"], (*place, limits.BATCH))).fetchall()
    moved = False
    for number, attempt, spec, *stored in waiting:
        dated = Spec.decode(spec).waits_for_date(attempt)
        times = brought_back(Times._make(stored), dated=dated, now=now)
        if times is not None:
            moved = True
            yield Execute(SQL["redate"], (times.due_at, times.updated_at, number))
            yield Execute(SQL["redate_content"], (times.ready_at, times.run_at, number))
    if moved:
        yield WAKE  # who waits for the next due time waits for an earlier one now
    if len(waiting) < limits.BATCH:
        return None
    number, _, _, due_at, *_ = waiting[-1]
    return f"{due_at} {number}"
