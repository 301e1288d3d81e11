"""Looking at the workflows that run: whether they have ended, and what follows.

Nothing happens to a record when a task ends, which is what happens most. Instead the maintenance
looks at the tasks of a running workflow about once a second at first, and less often the longer it
runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, Protocol

import msgspec

from fairlane.core import limits
from fairlane.core.documents import Document, Order, rewrites, write
from fairlane.core.flow import Flow, Op
from fairlane.core.model import OnFailure
from fairlane.core.priority import MICROSECONDS
from fairlane.core.store_settings import StoreSettings
from fairlane.core.workflow_list import Listing
from fairlane.core.workflow_records import (
    ENDS,
    KIND,
    document_of,
    ended,
    pause_after,
    record_of,
    watch_of,
    watched_at,
    watched_id,
)
from fairlane.core.workflows import Cancels, Workflow, WorkflowState, cancel_all, read_workflow


class Watched(msgspec.Struct, frozen=True):
    """What a round found. `ended`: the ids of workflows that have ended, with their states;
    `more`: others are due."""

    ended: Mapping[str, WorkflowState]
    more: bool = False


class WorkflowEnds(msgspec.Struct, frozen=True, omit_defaults=True):
    """How many workflows have ever ended in which state."""

    states: dict[WorkflowState, int] = {}


class Watching(Listing, Cancels, Protocol):
    """The operations that a round is composed of."""

    def settings(self) -> Op[StoreSettings]: ...


_MOST: Final = limits.WORKFLOW_WATCH_SECONDS_MOST
_decoder: Final = msgspec.json.Decoder(WorkflowEnds)


@rewrites
def watch_workflows(self: Watching) -> Flow[Watched]:
    now, page = yield from self.list_documents(KIND, Order.OLDEST, limits.WORKFLOW_PAGE)
    due = [each for each in page if each.at < 0 and watched_at(each) <= now]
    if not due:
        return Watched({})
    ids = [watched_id(each) for each in due]
    _, records = yield from self.read_documents(KIND, ids)
    round = _Round(now, (yield from self.settings().flow()))
    read = 0
    for watch, stored in zip(due, records, strict=True):
        if read >= limits.WORKFLOW_TASKS_WATCHED:
            break
        record = record_of(stored)
        size = limits.WORKFLOW_NODES if record is None else record.tasks
        found = yield from read_workflow(self, watched_id(watch), size)
        read += size
        if found is not None and found.condemned:
            # A process died before it had cancelled them, or a task expired, or was cancelled.
            yield from cancel_all(self, found.condemned)
            found = yield from read_workflow(self, watched_id(watch), size)
        round.judge(watch, stored, found)
    _, (counts,) = yield from self.read_documents(KIND, [ENDS])
    yield from write(self, KIND, [*round.puts, *round.counted(counts)], round.drops)
    if round.ended:
        yield from self.expire_documents(KIND, limits.BATCH)
    return Watched(round.ended, more=round.size < len(due) or len(due) == limits.WORKFLOW_PAGE)


class _Round:
    """What is to be written after a look at some workflows."""

    def __init__(self, now: int, settings: StoreSettings) -> None:
        self._now = now
        self._kept = int(settings.retention.failed * MICROSECONDS)
        self.puts: list[Document] = []
        self.drops: list[Document] = []
        self.ended: dict[str, WorkflowState] = {}
        self.size = 0

    def judge(self, watch: Document, stored: Document | None, found: Workflow | None) -> None:
        """Decide about one workflow."""
        self.size += 1
        record = record_of(stored)
        if found is not None and found.state is WorkflowState.RUNNING:
            strict = found.on_failure is OnFailure.CANCEL
            pause = pause_after(watch, limits.WORKFLOW_STRICT_SECONDS_MOST if strict else _MOST)
            at = self._now + int(pause * MICROSECONDS)
            self.puts.append(watch_of(watched_id(watch), at, pause, watch.version))
            return
        self.drops.append(watch)
        if stored is None or record is None:
            return
        if found is None:  # its tasks were deleted: nobody knows how they ended
            self.drops.append(stored)
            return
        end = ended(record, found, self._now)
        expires_at = self._now + self._kept
        self.puts.append(document_of(stored.id, end, stored.at, stored.version, expires_at))
        if record.is_open:
            self.ended[stored.id] = end.state

    def counted(self, stored: Document | None) -> list[Document]:
        """Return the document of counts with these ends, if there are any."""
        if not self.ended:
            return []
        counts = Counter(ends_of(stored).states)
        counts.update(self.ended.values())
        value = msgspec.json.encode(WorkflowEnds(dict(counts)))
        return [Document(ENDS, value, 0, version=0 if stored is None else stored.version)]


def ends_of(stored: Document | None) -> WorkflowEnds:
    """Return the counts out of their document."""
    return WorkflowEnds() if stored is None else _decoder.decode(stored.value)
