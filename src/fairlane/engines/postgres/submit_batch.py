"""Tasks of one submission, sorted by their options, so that equal options are sent once, and cut
into parts if they are large."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import accumulate, chain, groupby, product
from operator import attrgetter
from typing import Any, Final, NamedTuple

from fairlane.core.flow import Flow
from fairlane.core.lanes import LaneKey
from fairlane.core.model import Accepted, NewTask
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import State
from fairlane.engines.files import fill, part
from fairlane.engines.postgres.calls import WAITERS, Query
from fairlane.engines.postgres.context import Known, Stream
from fairlane.engines.postgres.errors import LaneClosed
from fairlane.engines.postgres.rows import array_of_bounds, array_of_ids
from fairlane.engines.postgres.statements import load

SQL = load("submit")


_SUBMIT_RELATED = SQL["submit"]
_SUBMIT_UNRELATED = fill(SQL["submit"], unique="")
_SEVERAL_KINDS = fill(_SUBMIT_UNRELATED, kinds=part(SQL["several_kinds"], "kinds"))
_ONE_KIND = fill(
    _SUBMIT_UNRELATED,
    kinds=part(SQL["one_kind"], "kinds"),
    grouped=part(SQL["one_kind"], "grouped"),
    open=part(SQL["one_kind"], "open"),
)
_SUBMIT = {
    (True, True): fill(_ONE_KIND, scheduled=""),
    (True, False): _ONE_KIND,
    (False, True): fill(_SEVERAL_KINDS, scheduled=""),
    (False, False): _SEVERAL_KINDS,
}
"""By whether all tasks are of one kind, and whether all are due at once."""
_STATEMENTS = {
    (statement, guarded, plain, checked): fill(
        statement,
        **({} if guarded else {"guard": ""}),
        **({} if plain else {"plain": ""}),
        **({} if checked else {"lanes": ""}),
    )
    for statement in (_SUBMIT_RELATED, *_SUBMIT.values())
    for guarded, plain, checked in product((True, False), repeat=3)
}
"""By whether ids are compared with those of deleted tasks, whether a payload is not encrypted, and
whether lanes must be open."""


@cache
def _at_a_given_time(statement: str, parameter: int) -> str:
    """Return a statement that takes the time as a parameter."""
    return fill(statement, now=f"${parameter}::bigint")


class Flags(NamedTuple):
    """How a task relates to others.

    `bound`: it waits for its parents. `linked`: another task depends on it, or it has a unique key.
    """

    bound: bool = False
    linked: bool = False


class Kind(NamedTuple):
    """Options that tasks have in common."""

    queue: str
    type: str
    capabilities: tuple[str, ...]
    level: int
    delay: int
    run_at: int | None
    expires_at: int | None
    timeout: float | None
    max_retries: int
    spec: bytes | None

    @property
    def lane(self) -> LaneKey:
        return self.queue, self.type, self.capabilities

    @property
    def time(self) -> float:
        """Return a sort key: tasks that are due at once come before those with a later time."""
        return self.run_at if self.run_at is not None else math.inf if self.delay else -math.inf

    def waits(self, now: int) -> bool:
        """Return whether its tasks have to wait for their time."""
        return (now + self.delay if self.run_at is None else self.run_at) > now


_TERMS = attrgetter(
    "queue",
    "type",
    "capabilities",
    "level",
    "delay",
    "run_at",
    "expires_at",
    "timeout",
    "max_retries",
    "spec",
)


def _kind_of(task: NewTask) -> Kind:
    return Kind(
        task.queue,
        task.type,
        task.capabilities,
        task.level,
        int(task.delay * MICROSECONDS),
        task.run_at,
        task.expires_at,
        task.timeout,
        task.max_retries,
        task.spec.encode(),
    )


_FREE = Flags()

Part = list[tuple[tuple[Kind, Flags], list[NewTask]]]
"""Tasks by their kinds."""

WHOLE_BYTES: Final = 1536 * 1024
"""The maximum size of what is stored by one statement."""
PART_BYTES: Final = 512 * 1024
"""The size of the parts in which more than that is stored, unless a part is one task or result."""


class Batch:
    """Tasks sorted by kind. `flags`, by task id, is for tasks that relate to others."""

    def __init__(self, tasks: Sequence[NewTask], flags: Mapping[str, Flags] | None = None) -> None:
        self._tasks = tasks
        self._related = bool(flags)
        kinds: dict[tuple[Kind, Flags], list[NewTask]] = {}
        if flags:
            for task in tasks:
                kind = (_kind_of(task), flags.get(task.task_id, _FREE))
                kinds.setdefault(kind, []).append(task)
        else:
            # Mostly the next task is of the same kind, and comparing is cheaper than hashing.
            for _, run in groupby(tasks, _TERMS):
                alike = list(run)
                kinds.setdefault((_kind_of(alike[0]), _FREE), []).extend(alike)
        # The tasks of one journal entry stand together: one lane and level, due at once or later.
        whole = [(kind, kinds[kind]) for kind in sorted(kinds, key=_place)]
        self.parts = [whole] if len(tasks) == 1 else _parts(whole)
        """What one statement stores. Drivers copy the parameters of a statement several times."""

    @property
    def streams(self) -> set[Stream]:
        """Return the streams that the tasks go to."""
        return {(kind.lane, kind.level) for some in self.parts for (kind, _), _ in some}

    @property
    def has_parents(self) -> bool:
        """Return whether some of the tasks depend on others."""
        return any(alike[0].spec.depends_on for some in self.parts for _, alike in some)

    def insert(
        self, known: Known, *, plain: bool, fenced: bool = False, opened: bool = False
    ) -> Flow[tuple[list[Accepted], bool]]:
        """Store all tasks. Return the replies, and whether a worker may wait for them. If there are
        several `parts`, the caller has begun a transaction.

        Raises Fenced if a deleted task had one of the ids, unless the caller knows (`fenced`): then
        their attempts go on. `plain`: raises EncryptionRequired if the store requires it. Raises
        LaneClosed, unless the caller has opened the lanes within the same transaction (`opened`).
        """
        if known.missing(self.streams):
            raise LaneClosed
        later: set[str] = set()
        awaited = False
        now = 0
        for some in self.parts:
            statement, values = self._statement(
                some, known, plain=plain, fenced=fenced, opened=opened
            )
            if now:
                values.append(now)
                statement = _at_a_given_time(statement, len(values))
            ((now, awaits, *_),) = yield Query(statement, values)
            if fenced:
                yield Query(SQL["go_on"], (values[0],))
            awaited = awaited or awaits
            for (kind, flags), alike in some:
                if flags.bound or kind.waits(now):
                    later.update([task.task_id for task in alike])
        accepted = [
            Accepted(task.task_id, State.SCHEDULED if task.task_id in later else State.QUEUED, now)
            for task in self._tasks
        ]
        return accepted, awaited

    def _statement(
        self, some: Part, known: Known, *, plain: bool, fenced: bool, opened: bool
    ) -> tuple[str, list[Any]]:
        """Return the statement that stores a part, and its parameters."""
        tasks = list(chain.from_iterable(alike for _, alike in some))
        payloads = [task.payload for task in tasks]
        until = list(accumulate(len(alike) for _, alike in some))
        kinds = [kind for (kind, _), _ in some]
        _, _, _, *options = [list(column) for column in zip(*kinds, strict=True)]
        columns = [
            [1, *(end + 1 for end in until[:-1])],
            until,
            [known.ids[kind.lane] for kind in kinds],
            *options,
        ]
        alike = len(kinds) == 1 and not self._related
        at_once = not any(kind.delay or kind.run_at for kind in kinds)
        values = [
            array_of_ids([task.task_id for task in tasks]),
            b"".join(payloads),
            array_of_bounds(payloads),
            _or_none([task.idempotency_key for task in tasks]),
            WAITERS,
            *(column[0] if alike else _or_none(column) for column in columns),
        ]
        if self._related:
            dependencies = [flags for (_, flags), _ in some]
            holds = [task.unique for task in tasks]
            values += [
                [flags.bound for flags in dependencies],
                [flags.linked for flags in dependencies],
                _or_none([hold and hold.key for hold in holds]),
                _or_none([hold and hold.states for hold in holds]),
            ]
        statement = _SUBMIT_RELATED if self._related else _SUBMIT[alike, at_once]
        guarded = not fenced and any(task.chosen for task in tasks)
        return _STATEMENTS[statement, guarded, plain, not opened], values


def _parts(whole: Part) -> list[Part]:
    """Return tasks in parts of a limited size, in the same order. Most batches are one part."""
    sizes = [_size_of(kind, alike) for (kind, _), alike in whole]
    if sum(sizes) <= WHOLE_BYTES:
        return [whole]
    parts: list[Part] = [[]]
    room = PART_BYTES
    for (kind, alike), size in zip(whole, sizes, strict=True):
        if size <= room:
            parts[-1].append((kind, alike))
            room -= size
            continue
        for task in alike:
            size = _size_of(kind[0], [task])
            if size > room and parts[-1]:
                parts.append([])
                room = PART_BYTES
            if not (parts[-1] and parts[-1][-1][0] == kind):
                parts[-1].append((kind, []))
            parts[-1][-1][1].append(task)
            room -= size
    return parts


def _size_of(kind: Kind, alike: list[NewTask]) -> int:
    return len(kind.spec or b"") + sum(map(len, [task.payload for task in alike]))


def _place(kind: tuple[Kind, Flags]) -> tuple[LaneKey, int, float]:
    terms, flags = kind
    return terms.lane, terms.level, math.inf if flags.bound else terms.time


def _or_none(column: list[Any]) -> list[Any] | None:
    """Return None for a column of NULLs, which then need not be sent."""
    return None if column.count(None) == len(column) else column
