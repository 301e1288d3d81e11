"""submit: store new tasks."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import chain
from typing import Any

from fairlane.core import encryption, limits
from fairlane.core.dependencies import check_batch
from fairlane.core.documents import Document, Overtaken, Written
from fairlane.core.errors import (
    DuplicateTask,
    EncryptionRequired,
    FairlaneError,
    IdempotencyConflict,
    InvalidTaskId,
    UnknownDependency,
)
from fairlane.core.flow import Flow, writes
from fairlane.core.model import PLAIN, Accepted, NewTask
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import State
from fairlane.core.submission import check_repeated
from fairlane.core.uniqueness import Hold
from fairlane.engines.redis.calls import LARGE_BYTES, Argument, Joined
from fairlane.engines.redis.context import Catalogue, Context
from fairlane.engines.redis.documents import write_documents, written
from fairlane.engines.redis.inspect import fetch
from fairlane.engines.redis.record import raw_id, raw_ids_of, submitted, text_id
from fairlane.engines.redis.scripts import script

SUBMIT = script("submit")
SUBMIT_ALONG = script("submit_along")

_REFUSALS: dict[bytes, type[FairlaneError]] = {
    b"conflict": IdempotencyConflict,
    b"duplicate": DuplicateTask,
    b"unknown": UnknownDependency,
    b"plain": EncryptionRequired,
}

Group = tuple[int, int, float, int | None]
"""(lane, level, delay, run_at): tasks of one group get the same state and times"""


@writes
def submit(self: Context, tasks: Sequence[NewTask]) -> Flow[list[Accepted]]:
    return (yield from _submit(self, tasks))


def submit_along(
    self: Context,
    tasks: Sequence[NewTask],
    kind: str,
    puts: Sequence[Document],
    cancels: Sequence[str] = (),
) -> Flow[list[Accepted] | None]:
    """Store tasks, write documents and cancel tasks in an operation: see core/scheduling."""
    if not tasks:
        alone = yield from write_documents(self, kind, puts)
        return [] if alone is Written.DONE else None
    along = [b"".join(raw_ids_of(list(cancels))), *written(kind, puts)]
    try:
        return (yield from _submit(self, tasks, along))
    except Overtaken:
        return None


def _submit(
    self: Context, tasks: Sequence[NewTask], along: Sequence[Argument] = ()
) -> Flow[list[Accepted]]:
    check_batch(tasks)
    if not tasks:
        return []
    if len({task.task_id for task in tasks}) != len(tasks):
        raise InvalidTaskId("A task id occurs twice in one batch: every task needs its own.")
    reply: list[Any] = [b"stale"]
    groups: dict[Group, list[NewTask]] = {}
    compared: list[bytes] = []
    large = sum(map(len, [task.payload for task in tasks])) > LARGE_BYTES
    while reply[0] in {b"stale", b"known"}:
        catalogue = yield from self.with_lanes(
            (task.queue, task.type, task.capabilities) for task in tasks
        )
        groups = _grouped(tasks, catalogue)
        arguments, widest = _arguments(tasks, groups, catalogue, compared, along, large=large)
        pieces = large or widest * len(tasks) > LARGE_BYTES
        call = self.call_in_pieces if pieces else self.call
        reply = yield from call(SUBMIT_ALONG if along else SUBMIT, *arguments)
        if reply[0] == b"stale":
            yield from self.refresh()
        elif reply[0] == b"known":
            yield from _compare(self, tasks, reply[1])
            compared += reply[1]
    if reply[0] == b"overtaken":
        raise Overtaken
    refusal = _REFUSALS.get(reply[0])
    if refusal is not None:
        raise refusal
    _, now, states, other_states, known = reply
    return _answers(tasks, groups, int(now), states, other_states, known)


def _compare(self: Context, tasks: Sequence[NewTask], known: list[bytes]) -> Flow[None]:
    """Raise TaskIdConflict if a task is not the one that is stored under its id."""
    stored, _ = yield from fetch(self, [text_id(raw) for raw in known])
    for task in tasks:
        if task.task_id in stored:
            earlier = stored[task.task_id]
            check_repeated(task, earlier.type, earlier.payload, earlier.inputs)


def _grouped(tasks: Sequence[NewTask], catalogue: Catalogue) -> dict[Group, list[NewTask]]:
    groups: dict[Group, list[NewTask]] = {}
    ids = catalogue.ids
    last: tuple[object, ...] = ()
    members: list[NewTask] = []
    for task in tasks:
        # Most neighbours share a group, and comparing is faster than looking up the group.
        kind = (task.queue, task.type, task.capabilities, task.level, task.delay, task.run_at)
        if kind != last:
            last = kind
            lane = ids[task.queue, task.type, task.capabilities]
            members = groups.setdefault((lane, task.level, task.delay, task.run_at), [])
        members.append(task)
    return groups


def _arguments(
    tasks: Sequence[NewTask],
    groups: dict[Group, list[NewTask]],
    catalogue: Catalogue,
    compared: list[bytes],
    along: Sequence[Argument],
    *,
    large: bool,
) -> tuple[list[Argument], int]:
    """Return the arguments that submission.lua describes, and the largest size of what a task has
    besides its payload. `large`: the payloads are."""
    heads: list[Argument] = []
    bodies: list[Argument] = []
    smallest = b"\xff" * 16
    head = b""
    special = False
    widest = 0
    for (lane, level, delay, run_at), members in groups.items():
        heads += (
            struct.pack(">HB", lane, level),
            len(members),
            int(delay * MICROSECONDS),
            b"" if run_at is None else struct.pack(">q", run_at),
        )
        raw_ids = raw_ids_of([task.task_id for task in members])
        smallest = min(smallest, *raw_ids)
        last: tuple[object, ...] = ()
        for task, raw in zip(members, raw_ids, strict=True):
            # Everything but the payload: most tasks of a group have the same.
            terms = (
                task.timeout,
                task.expires_at,
                task.max_retries,
                task.idempotency_key,
                task.spec,
            )
            if terms != last:
                last = terms
                head = _head(lane, level, task)
                widest = max(widest, len(head))
            bodies += (raw, Joined(head, task.payload) if large else head + task.payload)
            if task.idempotency_key or task.unique is not None or task.spec.depends_on:
                special = True
    specials = _specials(tasks, groups) if special else []
    window = limits.IDEMPOTENCY_SECONDS * MICROSECONDS
    counts = (len(groups), len(bodies) // 2, len(specials))
    arguments: list[Argument] = [
        catalogue.version,
        window,
        smallest,
        *counts,
        b"".join(compared),
        int(any(task.chosen for task in tasks)),
        int(encryption.has_plain_payload(tasks)),
        int(bool(along)),
        *heads,
        *bodies,
        *chain.from_iterable(specials),
        *along,
    ]
    return arguments, widest


def _head(lane: int, level: int, task: NewTask) -> bytes:
    """Return a packed new task without its payload."""
    key = b"" if task.idempotency_key is None else task.idempotency_key.encode()
    spec = b"" if task.spec is PLAIN else task.spec.encode() or b""
    terms = (task.timeout, task.expires_at, task.max_retries)
    return submitted(lane, level, *terms, key, spec, b"")


def _specials(
    tasks: Sequence[NewTask], groups: dict[Group, list[NewTask]]
) -> list[tuple[Argument, ...]]:
    """Return the tasks that need a check: with an idempotency key, a unique key or parents."""
    in_groups = (task.task_id for members in groups.values() for task in members)
    places = {task_id: place for place, task_id in enumerate(in_groups, start=1)}
    found: list[tuple[Argument, ...]] = []
    earlier: dict[str, int] = {}
    for task in tasks:
        place, key, unique = places[task.task_id], task.idempotency_key, task.unique
        if key is not None or unique is not None or task.depends_on:
            found.append(
                (
                    place,
                    key or b"",
                    task.fingerprint or b"",
                    *_hold(unique),
                    _parents(task, earlier),
                )
            )
        earlier[task.task_id] = place
    return found


def _hold(unique: Hold | None) -> tuple[Argument, Argument, Argument]:
    if unique is None:
        return b"", b"", b""
    period = b"" if unique.period is None else unique.period
    return unique.key + struct.pack(">H", unique.states), period, unique.mode.value


def _parents(task: NewTask, earlier: dict[str, int]) -> bytes:
    if not task.depends_on:
        return b""
    parents = [
        raw_id(parent) + struct.pack(">H", earlier.get(parent, 0)) for parent in task.depends_on
    ]
    return b"".join([b"1" if task.spec.tolerant else b"0", *parents])


def _answers(
    tasks: Sequence[NewTask],
    groups: dict[Group, list[NewTask]],
    now: int,
    states: list[int],
    other_states: list[tuple[int, int]],
    known: list[tuple[int, bytes, int, bytes]],
) -> list[Accepted]:
    found: dict[str, Accepted] = {}
    in_order: list[NewTask] = []
    for state_code, members in zip(states, groups.values(), strict=True):
        state = State.of(state_code)
        in_order += members
        for task in members:
            found[task.task_id] = Accepted(task.task_id, state, now)
    for position, state_code in other_states:
        task_id = in_order[position - 1].task_id
        found[task_id] = Accepted(task_id, State.of(state_code), now)
    for position, raw, state_code, created_at in known:
        found[in_order[position - 1].task_id] = Accepted(
            text_id(raw), State.of(state_code), int(created_at), known=True
        )
    return [found[task.task_id] for task in tasks]
