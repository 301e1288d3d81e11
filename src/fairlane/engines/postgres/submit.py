"""submit: tasks are stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from fairlane.core import encryption
from fairlane.core.dependencies import check_batch
from fairlane.core.documents import Document, Overtaken, Written
from fairlane.core.errors import (
    Conflict,
    InvalidInput,
    InvalidTaskId,
    StoreBusy,
    StoreUnavailable,
)
from fairlane.core.flow import Flow, writes
from fairlane.core.machine import CANCEL, REPLACE, Verb, sources_of
from fairlane.core.model import Accepted, NewTask
from fairlane.core.states import WAITING, State
from fairlane.engines.postgres import admission_keys, dependents, moves
from fairlane.engines.postgres.accounting import fold_and_trim
from fairlane.engines.postgres.admission import Admission
from fairlane.engines.postgres.calls import BEGIN, COMMIT, ROLLBACK, WAKE, WAKE_US, Apart, Query
from fairlane.engines.postgres.context import Context, Known
from fairlane.engines.postgres.dependencies import (
    Dependencies,
    dependencies_of,
    lock_parents,
    store_dependencies,
)
from fairlane.engines.postgres.documents import add_documents, refuse_plain, write_documents
from fairlane.engines.postgres.errors import Duplicate, Fenced, LaneClosed
from fairlane.engines.postgres.submit_batch import Batch

_TRIES = 100
"""How often to try again after something had to be done first, or was changed by others."""

_DROPPED = "The lanes of these tasks were dropped at every try: submit them again."

Stored = tuple[list[Accepted], bool]
"""Replies, and whether a worker may wait for the tasks."""


class Along(NamedTuple):
    """What else happens in the transaction of a submission."""

    write: Callable[[], Flow[Written]]
    """Writes documents."""
    cancels: Sequence[str] = ()
    """Tasks to be cancelled, in the order in which `cancel` locks them."""


@writes
def submit(self: Context, tasks: Sequence[NewTask]) -> Flow[list[Accepted]]:
    check_batch(tasks)
    if len({task.task_id for task in tasks}) < len(tasks):
        raise InvalidTaskId("A task id occurs twice in one batch: every task needs its own.")
    if not tasks:
        return []
    keyed = any(task.idempotency_key is not None or task.unique is not None for task in tasks)
    batch = None if keyed else Batch(tasks)
    plain = encryption.has_plain_payload(tasks)
    if batch is None or batch.has_parents:
        answers, awaited = yield from _submit_carefully(self, tasks, plain)
    else:
        try:
            answers, awaited = yield from _submit_plainly(self, batch, plain)
        except (Duplicate, Fenced):
            answers, awaited = yield from _submit_carefully(self, tasks, plain)
    yield from _afterwards(self, answers, awaited)
    return answers


def submit_along(
    self: Context,
    tasks: Sequence[NewTask],
    kind: str,
    puts: Sequence[Document],
    cancels: Sequence[str] = (),
) -> Flow[list[Accepted] | None]:
    """Store tasks, write documents and cancel tasks in an operation: see core/scheduling."""
    if not tasks:
        written = yield from write_documents(self, kind, puts)
        return [] if written is Written.DONE else None
    plain = encryption.has_plain_payload(tasks)
    write = write_documents if any(each.version for each in puts) else add_documents
    along = Along(lambda: write(self, kind, puts), sorted(cancels))
    try:
        answers, awaited = yield from _submit_carefully(self, tasks, plain, along)
    except Overtaken:
        yield ROLLBACK
        return None
    except (InvalidInput, Conflict):
        # The operation goes on: without these tasks, or from its start.
        yield ROLLBACK
        raise
    yield from _afterwards(self, answers, awaited)
    return answers


def _afterwards(self: Context, answers: Sequence[Accepted], awaited: bool) -> Flow[None]:
    """Do what follows a submission: fold counters, and wake workers."""
    yield from fold_and_trim(self)
    if any(answer.state is State.QUEUED and not answer.known for answer in answers):
        yield WAKE if awaited else WAKE_US


def _submit_plainly(self: Context, batch: Batch, plain: bool) -> Flow[Stored]:
    """Submit in one statement, or in a transaction if the batch is large. Raises Duplicate if an id
    is stored already."""
    known = self.catalogue.known
    if missing := known.missing(batch.streams):
        known = yield from self.catalogue.open(missing)
    opened = False
    for _ in range(_TRIES):
        insert = batch.insert(known, plain=plain, opened=opened)
        try:
            return (yield from (insert if len(batch.parts) == 1 else _as_a_whole(insert)))
        except LaneClosed:
            known, opened = yield from _open_again(self, batch)
    raise StoreBusy(_DROPPED)


def _as_a_whole(insert: Flow[Stored]) -> Flow[Stored]:
    """Perform several statements in a transaction, so that all of them take effect or none."""
    yield BEGIN
    try:
        stored = yield from insert
    except (LaneClosed, Duplicate, Fenced):
        yield ROLLBACK  # the operation goes on
        raise
    yield COMMIT
    return stored


def _open_again(self: Context, batch: Batch) -> Flow[tuple[Known, bool]]:
    """Open lanes that were closed. Return whether this holds until the end of the transaction.

    A transaction of a caller may see the lanes as they were when it began. Until it ends, nothing
    removes a lane that is open now.
    """
    known = yield from self.catalogue.open(batch.streams)
    ((isolation,),) = yield Query("SHOW transaction_isolation")
    return known, isolation != "read committed"


def _submit_carefully(
    self: Context, tasks: Sequence[NewTask], plain: bool, along: Along | None = None
) -> Flow[Stored]:
    """Submit tasks that have keys or parents, that may be stored already, or were deleted.

    `along` takes effect in the same transaction. Raises Overtaken if its documents have changed.
    """
    if plain:
        yield from refuse_plain()
    fenced = opened = False
    for _ in range(_TRIES):
        try:
            stored = yield from _try_to_submit(self, tasks, along, fenced=fenced, opened=opened)
        except Fenced:
            yield ROLLBACK
            fenced = True
            continue
        except LaneClosed:
            yield ROLLBACK
            _, opened = yield from _open_again(self, Batch(tasks))
            continue
        if stored is not None:
            return stored
    raise StoreBusy(
        "The parents or keys of these tasks were changed by others at every try: submit them again."
    )


def _try_to_submit(
    self: Context,
    tasks: Sequence[NewTask],
    along: Along | None,
    *,
    fenced: bool,
    opened: bool,
) -> Flow[Stored | None]:
    """Try once, in a transaction. Return None if something else had to be done first."""
    yield BEGIN
    admission = yield from _admit(tasks)
    replaced = yield from _replace(admission)
    cancelled = yield from _cancel(() if along is None else along.cancels)
    if replaced is None or cancelled is None:
        yield ROLLBACK
        return None
    parents = yield from lock_parents(admission.fresh)
    if parents.unfinished:
        yield ROLLBACK
        yield Apart(dependents.release_left_over)
        return None
    dependencies = dependencies_of(admission.fresh, parents.states)
    batch = Batch(admission.fresh, dependencies.flags)
    known = self.catalogue.known
    if missing := known.missing(batch.streams):
        yield ROLLBACK
        yield from self.catalogue.open(missing)
        return None
    accepted, awaited = yield from _store(known, batch, admission, fenced=fenced, opened=opened)
    doomed = yield from store_dependencies(dependencies)
    # Last, because it may take a lock that all documents of the kind share.
    if along is not None and (yield from along.write()) is not Written.DONE:
        raise Overtaken
    yield COMMIT
    linked = yield from _link(dependencies)
    if replaced or cancelled or doomed or linked:
        yield WAKE
    return admission.answers(tasks, [dependencies.answer(each) for each in accepted]), awaited


def _admit(tasks: Sequence[NewTask]) -> Flow[Admission]:
    """Decide which tasks are stored. The keys are locked until the end of the transaction."""
    stored = yield from admission_keys.find_stored([task.task_id for task in tasks])
    if stored:
        yield from admission_keys.check_stored(task for task in tasks if task.task_id in stored)
    new = [task for task in tasks if task.task_id not in stored]
    found_keys = yield from admission_keys.take_keys(new)
    new = [task for task in new if task.idempotency_key not in found_keys.holders]
    found_uniques = yield from admission_keys.take_uniques(new)
    admission = Admission(found_keys, found_uniques)
    admission.decide(tasks, stored)
    return admission


def _replace(admission: Admission) -> Flow[bool | None]:
    """Cancel the tasks that are replaced. Return whether to wake waiting workers.

    Return None if one of them has just been claimed.
    """
    if not admission.replaced:
        return False
    found = yield from moves.end(admission.replaced, WAITING, REPLACE)
    if not all(task.applied for task in found):
        return None
    return (yield from dependents.release_dependents(moves.ended_of(found)))


def _cancel(task_ids: Sequence[str]) -> Flow[bool | None]:
    """Cancel tasks, unless they have ended. Return whether to wake waiting workers.

    Return None if one of them is on its way from one table to another.
    """
    if not task_ids:
        return False
    among = sources_of(Verb.CANCEL)
    found = yield from moves.end(task_ids, among, CANCEL)
    if any(not task.applied and task.state in among for task in found):
        return None
    return (yield from dependents.release_dependents(moves.ended_of(found)))


def _store(
    known: Known, batch: Batch, admission: Admission, *, fenced: bool, opened: bool
) -> Flow[Stored]:
    """Store tasks and their keys."""
    accepted: list[Accepted] = []
    awaited = False
    if admission.fresh:
        try:
            accepted, awaited = yield from batch.insert(
                known, plain=False, fenced=fenced, opened=opened
            )
        except Duplicate:
            raise StoreBusy(
                "The same tasks are being submitted twice at this moment: submit them again."
            ) from None
    yield from admission_keys.assign_keys(admission.found_keys, admission.keys)
    yield from admission_keys.assign_uniques(admission.found_uniques, admission.uniques)
    return accepted, awaited


def _link(dependencies: Dependencies) -> Flow[bool]:
    """Mark the parents of new tasks as linked. Return whether to wake waiting workers."""
    if not any(pair.fresh for pair in dependencies.bonds):
        return False
    try:
        resolved = yield from dependents.link()
    except StoreUnavailable:
        # The tasks are stored: the next claims will mark them.
        with suppress(StoreUnavailable):
            yield ROLLBACK
        return True
    return resolved.released or resolved.more
