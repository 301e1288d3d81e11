"""submit: tasks enter."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from fairlane.core import limits
from fairlane.core.errors import BatchTooLarge, IdempotencyConflict, InvalidTaskId
from fairlane.core.flow import Flow, writes
from fairlane.core.model import PLAIN, Accepted, NewTask
from fairlane.core.priority import MICROSECONDS
from fairlane.core.states import State
from fairlane.engines.redis.context import Catalogue, Context
from fairlane.engines.redis.driver import Argument
from fairlane.engines.redis.record import raw_id, submitted, text_id
from fairlane.engines.redis.scripts import script

SUBMIT = script("submit")

Group = tuple[int, int, float, int | None]
"""(lane, level, delay, run_at): what tasks share that are stored alike"""


@writes
def submit(self: Context, tasks: Sequence[NewTask]) -> Flow[list[Accepted]]:
    if len(tasks) > limits.SUBMIT_BATCH:
        raise BatchTooLarge(
            f"At most {limits.SUBMIT_BATCH:,} tasks are stored at once, not {len(tasks):,}."
        )
    if not tasks:
        return []
    if len({task.task_id for task in tasks}) != len(tasks):
        raise InvalidTaskId("A task id occurs twice in one batch: every task needs its own.")
    reply: list[Any] = [b"stale"]
    groups: dict[Group, list[NewTask]] = {}
    while reply[0] == b"stale":
        catalogue = yield from self.with_lanes(
            (task.queue, task.type, task.capabilities) for task in tasks
        )
        groups = _grouped(tasks, catalogue)
        reply = yield from self.call(SUBMIT, *_arguments(groups, catalogue))
        if reply[0] == b"stale":
            yield from self.refresh()
    if reply[0] == b"conflict":
        raise IdempotencyConflict
    _, now, states, known = reply
    return _answers(tasks, groups, int(now), states, known)


def _grouped(tasks: Sequence[NewTask], catalogue: Catalogue) -> dict[Group, list[NewTask]]:
    groups: dict[Group, list[NewTask]] = {}
    ids = catalogue.ids
    for task in tasks:
        lane = ids[task.queue, task.type, task.capabilities]
        group = (lane, task.level, task.delay, task.run_at)
        members = groups.get(group)
        if members is None:
            groups[group] = [task]
        else:
            members.append(task)
    return groups


def _arguments(groups: dict[Group, list[NewTask]], catalogue: Catalogue) -> list[Argument]:
    """As the head of submit.lua lists them."""
    heads: list[Argument] = []
    bodies: list[Argument] = []
    keys: list[Argument] = []
    for (lane, level, delay, run_at), members in groups.items():
        heads += (
            struct.pack(">HB", lane, level),
            len(members),
            int(delay * MICROSECONDS),
            b"" if run_at is None else struct.pack(">q", run_at),
        )
        for task in members:
            key = b"" if task.idempotency_key is None else task.idempotency_key.encode()
            spec = b"" if task.spec is PLAIN else task.spec.encode() or b""
            bodies.append(raw_id(task.task_id))
            bodies.append(
                submitted(
                    lane,
                    level,
                    task.timeout,
                    task.expires_at,
                    task.max_retries,
                    key,
                    spec,
                    task.payload,
                )
            )
            if key:
                keys += (len(bodies) // 2, key, task.fingerprint or b"")
    window = limits.IDEMPOTENCY_SECONDS * MICROSECONDS
    counts = (len(groups), len(bodies) // 2, len(keys) // 3)
    return [catalogue.version, window, *counts, *heads, *bodies, *keys]


def _answers(
    tasks: Sequence[NewTask],
    groups: dict[Group, list[NewTask]],
    now: int,
    states: list[int],
    known: list[tuple[int, bytes, int, bytes]],
) -> list[Accepted]:
    found: dict[str, Accepted] = {}
    in_order: list[NewTask] = []
    for state_code, members in zip(states, groups.values(), strict=True):
        state = State.of(state_code)
        in_order += members
        for task in members:
            found[task.task_id] = Accepted(task.task_id, state, now)
    for position, raw, state_code, created_at in known:
        found[in_order[position - 1].task_id] = Accepted(
            text_id(raw), State.of(state_code), int(created_at), known=True
        )
    return [found[task.task_id] for task in tasks]
