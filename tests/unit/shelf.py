"""Documents and tasks in memory: what an engine does with them, as plainly as can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from fairlane.core.documents import Document, Order, Place, Written
from fairlane.core.errors import UnknownDependency
from fairlane.core.facts import Facts
from fairlane.core.flow import Flow, Op, perform, reads
from fairlane.core.model import Accepted, NewTask, Task, Worker
from fairlane.core.states import LIVE, State
from tests.unit.make import NOW, facts, stored

T = TypeVar("T")


class Shelf:
    """Answers at once. `interfere` is called before each write: somebody else may be quicker."""

    def __init__(self) -> None:
        self.now = NOW
        self.kinds: dict[str, dict[str, Document]] = {}
        self.interfere: Callable[[], object] = lambda: None
        self.tasks: dict[str, NewTask] = {}
        self.states: dict[str, State] = {}
        """Of the tasks that were submitted and not deleted."""
        self.refuse: Callable[[NewTask], object] = lambda _: None
        """Raises what the store says about a task that it does not take."""
        self.workers: list[Worker] = []

    def run(self, op: Op[T]) -> T:
        return perform(op.flow(), lambda call: call)

    def of(self, kind: str) -> dict[str, Document]:
        return self.kinds.setdefault(kind, {})

    def read_documents(
        self, kind: str, ids: Sequence[str]
    ) -> Flow[tuple[int, list[Document | None]]]:
        yield from ()
        return self.now, [self.of(kind).get(each) for each in ids]

    def find_document(self, kind: str, alias: str) -> Flow[tuple[int, Document] | None]:
        yield from ()
        found = ((self.now, each) for each in self.of(kind).values() if each.alias == alias)
        return next(found, None)

    def list_documents(
        self, kind: str, order: Order, limit: int, after: Place | None = None, skip: int = 0
    ) -> Flow[tuple[int, list[Document]]]:
        yield from ()
        newest = order is Order.NEWEST
        places = {(each.at, each.id): each for each in self.of(kind).values()}
        wanted = [
            place
            for place in sorted(places, reverse=newest)
            if after is None or (place < after if newest else place > after)
        ]
        return self.now, [places[place] for place in wanted[skip:][:limit]]

    def write_documents(
        self,
        kind: str,
        puts: Sequence[Document],
        drops: Sequence[Document] = (),
        most: int | None = None,
    ) -> Flow[Written]:
        yield from ()
        self.interfere()
        stored = self.of(kind)
        for each in (*puts, *drops):
            if each.version != (stored[each.id].version if each.id in stored else 0):
                return Written.OVERTAKEN
        aliases = {each.alias: each.id for each in stored.values() if each.alias}
        if any(aliases.get(put.alias or "", put.id) != put.id for put in puts):
            return Written.TAKEN
        new = sum(not each.version for each in puts)
        if most is not None and new and len(stored) + new > most:
            return Written.FULL
        for each in drops:
            del stored[each.id]
        stored.update({each.id: replace(each, version=each.version + 1) for each in puts})
        return Written.DONE

    def expire_documents(self, kind: str, limit: int) -> Flow[int]:
        yield from ()
        stored = self.of(kind)
        gone = [each.id for each in stored.values() if not each.counts(self.now)][:limit]
        for id in gone:
            del stored[id]
        return len(gone)

    @reads
    def facts(self) -> Flow[Facts]:
        yield from ()
        return facts(now=self.now, workers=self.workers)

    # -- tasks -------------------------------------------------------------------------------------

    def submit_along(
        self,
        tasks: Sequence[NewTask],
        kind: str,
        puts: Sequence[Document],
        cancels: Sequence[str] = (),
    ) -> Flow[list[Accepted] | None]:
        for task in tasks:
            self.refuse(task)
        there = self.states.keys() | {task.task_id for task in tasks}
        for task in tasks:
            if not there.issuperset(task.depends_on):
                raise UnknownDependency
        if (yield from self.write_documents(kind, puts)) is not Written.DONE:
            return None
        answers: list[Accepted] = []
        for task in tasks:
            known = task.task_id in self.states
            self.tasks.setdefault(task.task_id, task)
            state = self.states.setdefault(task.task_id, State.QUEUED)
            answers.append(Accepted(task.task_id, state, self.now, known))
        for each in cancels:
            if self.states.get(each) in LIVE:
                self.states[each] = State.CANCELLED
        return answers

    @reads
    def heads(self, task_ids: Sequence[str]) -> Flow[list[Task | None]]:
        yield from ()
        return [
            stored(task_id=each, state=self.states[each]) if each in self.states else None
            for each in task_ids
        ]


def once(act: Callable[[], Any]) -> Callable[[], None]:
    """Something that happens at the first call only."""
    left = [act]

    def happen() -> None:
        if left:
            left.pop()()

    return happen
