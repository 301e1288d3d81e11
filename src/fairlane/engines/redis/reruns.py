"""rerun: tasks of a workflow that have ended run again, each after its parents."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from fairlane.core.flow import Flow, writes
from fairlane.core.ids import checked_all
from fairlane.core.machine import BIND_AGAIN, FROM_START, Clears, Move, Place, sources_of
from fairlane.core.model import Replayed
from fairlane.core.reruns import Rerun
from fairlane.core.states import State
from fairlane.engines.redis.calls import Argument
from fairlane.engines.redis.context import Context
from fairlane.engines.redis.record import raw_id, raw_ids_of
from fairlane.engines.redis.scripts import script

RERUN = script("rerun")


@writes
def rerun(self: Context, reruns: Sequence[Rerun]) -> Flow[list[Replayed] | None]:
    checked_all([each.task_id for each in reruns])
    arguments: list[Argument] = [
        bytes(sorted(state.code for state in sources_of(FROM_START.verb))),
        *_terms(FROM_START),
        *_terms(BIND_AGAIN),
    ]
    for each in reruns:
        arguments += (
            raw_id(each.task_id),
            struct.pack(">I", each.version),
            b"1" if each.tolerant else b"0",
            b"".join(raw_ids_of(each.parents)),
        )
    reply = yield from self.call(RERUN, *arguments)
    if reply == [b"left"]:
        return None
    return [
        Replayed(each.task_id, bool(applied), State.of(code) if code else None)
        for each, (applied, code) in zip(reruns, reply, strict=True)
    ]


def _terms(move: Move) -> tuple[Argument, ...]:
    # The script writes both out.
    assert (move.place, move.clears) == (Place.RESET, ~Clears.NOTHING), move
    retries = b"" if move.retry_count is None else move.retry_count
    return move.verb.value, move.state.code, retries, move.returns or 0
