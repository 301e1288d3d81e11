"""apply: apply moves to executing tasks, each under its fence."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import chain

from fairlane.core import encryption
from fairlane.core.breaker import verdict
from fairlane.core.errors import EncryptionRequired
from fairlane.core.flow import Flow, writes
from fairlane.core.ids import checked_all
from fairlane.core.machine import RERUN, Clears, Place, Slot, Verb, allows
from fairlane.core.model import Verdict
from fairlane.core.priority import MICROSECONDS
from fairlane.core.records import stored_error
from fairlane.core.settlement import Fence, FencedMove, judge_late
from fairlane.core.states import State
from fairlane.core.tally import STALE_RESULTS, apart, bucket_of
from fairlane.engines.compression.results import expanded
from fairlane.engines.redis.calls import LARGE_BYTES, Argument
from fairlane.engines.redis.context import Context
from fairlane.engines.redis.inspect import fetch
from fairlane.engines.redis.record import LINE, raw_ids_of
from fairlane.engines.redis.rows import stored_key
from fairlane.engines.redis.scripts import script

APPLY = script("apply")
COUNT = script("count")

# The numbers of a move that is not a completion: retries, returns, timeout, microseconds to wait.
_NUMBERS = struct.Struct(">HHdQ")
_UNTIMED = -1
_COMPLETE = Verb.COMPLETE


@writes
def apply(self: Context, moves: Sequence[FencedMove], *, reaping: bool) -> Flow[list[Verdict]]:
    checked_all([item.task_id for item in moves])
    if not moves:
        return []
    kinds = _kinds(moves)
    order = list(chain.from_iterable(kinds.values()))
    ordered = [moves[at] for at in order]
    bodies = list(map(_body, ordered))
    call = self.call_in_pieces if sum(map(len, bodies)) > LARGE_BYTES else self.call
    late = yield from call(
        APPLY,
        int(reaping),
        len(kinds),
        _lines(ordered),
        int(encryption.has_plain_result(item.result for item in moves)),
        *chain.from_iterable(_head(moves[alike[0]], len(alike)) for alike in kinds.values()),
        *bodies,
    )
    if late == b"plain":
        raise EncryptionRequired
    verdicts = [Verdict.APPLIED] * len(moves)
    if late:
        places = [order[at - 1] for at in late]
        tasks, _ = yield from fetch(self, [moves[at].task_id for at in places])
        for at in places:
            item = moves[at]
            verdicts[at] = judge_late(expanded(tasks.get(item.task_id)), item)
        if not reaping and (stale := verdicts.count(Verdict.STALE)):
            yield from self.call(COUNT, stored_key(apart(STALE_RESULTS)), stale)
    return verdicts


def _kinds(moves: Sequence[FencedMove]) -> dict[tuple[object, ...], list[int]]:
    """Group moves by kind: everything but the task, its result and its numbers.

    The script applies one kind after another. Only the first of several reports of one run counts,
    so each later report gets its own kind, after all earlier ones.
    """
    kinds: dict[tuple[object, ...], list[int]] = {}
    repeated = len({item.task_id for item in moves}) < len(moves)
    reported: set[Fence] = set()
    for at, item in enumerate(moves):
        move = item.move
        kind: tuple[object, ...] = (item.worker_id, item.attempt, bucket_of(item.seconds))
        if move.verb is not _COMPLETE:
            kind += (move.verb, move.run, move.label)
        if repeated:
            if item.fence in reported:
                kind += (at,)
            reported.add(item.fence)
        alike = kinds.get(kind)
        if alike is None:
            alike = kinds[kind] = []
        alike.append(at)
    return kinds


def _lines(moves: Sequence[FencedMove]) -> bytes:
    raw_ids = raw_ids_of([item.task_id for item in moves])
    return b"".join(
        [
            LINE.pack(
                raw_id,
                item.attempt,
                _UNTIMED if item.seconds is None else round(item.seconds * MICROSECONDS),
            )
            for raw_id, item in zip(raw_ids, moves, strict=True)
        ]
    )


def _body(item: FencedMove) -> bytes:
    move = item.move
    if move.verb is _COMPLETE:
        return item.result or b""
    numbers = _NUMBERS.pack(
        move.retry_count or 0,
        move.returns or 0,
        move.timeout or 0.0,
        int(move.after * MICROSECONDS),
    )
    return numbers + (stored_error(move.error) or b"")


def _head(item: FencedMove, count: int) -> tuple[Argument, ...]:
    """Return the arguments of a kind, taken from any of its items."""
    move = item.move
    assert allows(move.verb, State.EXECUTING), move
    # The script writes out what is cleared.
    assert move.clears == (Clears.ERROR if move.ends else RERUN), move
    return (
        move.verb.value,
        f"{move.state.code}:{move.label}:{bucket_of(item.seconds)}",
        move.state.code,
        move.run or b"",
        item.worker_id,
        item.attempt,
        int(move.ends),
        int(move.slot is Slot.LINGER),
        int(move.place is Place.RESET),
        _COUNTED_AS[verdict(move)],
        count,
    )


_COUNTED_AS = {True: b"good", False: b"bad", None: b""}
"""What circuit breakers count a run as."""
