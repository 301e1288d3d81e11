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
from fairlane.core.documents import Document, Documents, Order, Place, rewrites, write
from fairlane.core.flow import Flow, Op, reads
from fairlane.core.ids import checked
from fairlane.core.model import OnFailure
from fairlane.core.priority import MICROSECONDS
from fairlane.core.store_settings import StoreSettings
from fairlane.core.workflow_list import Listing
from fairlane.core.workflow_records import (
    ENDS,
    KIND,
    Record,
    document_of,
    ended,
    pause_after,
    record_of,
    reopened,
    watch_id,
    watch_of,
    watched_at,
    watched_id,
)
from fairlane.core.workflows import Cancels, Workflow, WorkflowState, cancel_all, read_workflow

RECENT: Final = 100
"""How many ends are kept."""
STARTS: Final = 20
"""How many submissions are told."""


class Watched(msgspec.Struct, frozen=True):
    """What a round found. `ended`: the ids of workflows that have ended, with their states;
    `more`: others are due."""

    ended: Mapping[str, WorkflowState]
    more: bool = False


class WorkflowEnd(msgspec.Struct, frozen=True, array_like=True):
    """The end of a workflow. `number` counts them all; `at` is when it was noticed."""

    number: int
    at: int
    workflow_id: str
    name: str | None
    tasks: int
    state: WorkflowState


class WorkflowEnds(msgspec.Struct, frozen=True, omit_defaults=True):
    """How many workflows have ever ended in which state, and the last ends, the oldest first."""

    states: dict[WorkflowState, int] = {}
    recent: tuple[WorkflowEnd, ...] = ()

    @property
    def number(self) -> int:
        """Return how many have ended."""
        return sum(self.states.values())

    def counted(self, now: int, ended: Mapping[str, Record]) -> WorkflowEnds:
        """Return the counts with these ends."""
        states = Counter(self.states)
        states.update(record.state for record in ended.values())
        recent = [
            WorkflowEnd(number, now, workflow_id, record.name, record.tasks, record.state)
            for number, (workflow_id, record) in enumerate(ended.items(), self.number + 1)
        ]
        return WorkflowEnds(dict(states), (*self.recent, *recent)[-RECENT:])


class WorkflowStart(msgspec.Struct, frozen=True):
    """The submission of a workflow."""

    at: int
    workflow_id: str
    name: str | None
    tasks: int

    @property
    def place(self) -> Place:
        """Return where it stands among all."""
        return self.at, self.workflow_id


class WorkflowNews(msgspec.Struct, frozen=True):
    """The ends of workflows, and the last submissions, the oldest first."""

    ends: WorkflowEnds
    started: tuple[WorkflowStart, ...] = ()


class Watching(Listing, Cancels, Protocol):
    """The operations that a round is composed of."""

    def settings(self) -> Op[StoreSettings]: ...


_MOST: Final = limits.WORKFLOW_WATCH_SECONDS_MOST
_decoder: Final = msgspec.json.Decoder(WorkflowEnds)


@reads
def workflow_news(self: Documents, starts: int = STARTS) -> Flow[WorkflowNews]:
    _, (counts,) = yield from self.read_documents(KIND, [ENDS])
    newest: list[Document] = []
    if starts:
        _, newest = yield from self.list_documents(KIND, Order.NEWEST, starts)
    started = [
        WorkflowStart(each.at, each.id, record.name, record.tasks)
        for each in newest[::-1]
        if each.at > 0 and (record := record_of(each)) is not None
    ]
    return WorkflowNews(ends_of(counts), tuple(started))


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


@rewrites
def reopen_workflow(self: Documents, workflow_id: str) -> Flow[bool]:
    checked(workflow_id)
    now, (stored, watch) = yield from self.read_documents(
        KIND, [workflow_id, watch_id(workflow_id)]
    )
    record = record_of(stored)
    if stored is None or record is None or (record.is_open and watch is not None):
        return False
    pause = limits.WORKFLOW_WATCH_SECONDS
    version = 0 if watch is None else watch.version
    puts = [
        document_of(stored.id, reopened(record), stored.at, stored.version),
        watch_of(workflow_id, now + int(pause * MICROSECONDS), pause, version),
    ]
    yield from write(self, KIND, puts)
    return True


@rewrites
def forget_workflow(self: Documents, workflow_id: str) -> Flow[bool]:
    checked(workflow_id)
    _, found = yield from self.read_documents(KIND, [workflow_id, watch_id(workflow_id)])
    drops = [each for each in found if each is not None]
    if drops:
        yield from write(self, KIND, [], drops)
    return bool(drops)


class _Round:
    """What is to be written after a look at some workflows."""

    def __init__(self, now: int, settings: StoreSettings) -> None:
        self._now = now
        self._kept = int(settings.retention.failed * MICROSECONDS)
        self.puts: list[Document] = []
        self.drops: list[Document] = []
        self._records: dict[str, Record] = {}
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
            self._records[stored.id] = end

    @property
    def ended(self) -> dict[str, WorkflowState]:
        """Return the workflows whose end was noticed now."""
        return {each: record.state for each, record in self._records.items()}

    def counted(self, stored: Document | None) -> list[Document]:
        """Return the document of counts with these ends, if there are any."""
        if not self._records:
            return []
        value = msgspec.json.encode(ends_of(stored).counted(self._now, self._records))
        return [Document(ENDS, value, 0, version=0 if stored is None else stored.version)]


def ends_of(stored: Document | None) -> WorkflowEnds:
    """Return the counts out of their document."""
    return WorkflowEnds() if stored is None else _decoder.decode(stored.value)
