"""The journal: what happened, in the order it took effect.

Each engine transaction appends one entry that holds all its transitions. The journal feeds live
events and history; readers come back with a cursor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from fairlane.core.lanes import Lane
from fairlane.core.model import Event, moment

Line = tuple[str, str | None, int, int, int, str | None, float | None]
"""(verb, task id, lane, level, attempt, worker id, seconds)"""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Line])


def encode(lines: Sequence[Line]) -> bytes:
    """An entry as engines store it."""
    return _encoder.encode(lines)


def worker_line(verb: str, worker_id: str) -> Line:
    """A transition of a worker rather than of a task."""
    return (verb, None, 0, 0, 0, worker_id, None)


def decode(
    cursor: str, at: int, entry: bytes, lane_of: Callable[[int], Lane | None]
) -> Iterator[Event]:
    """The transitions in a stored entry."""
    time = moment(at)
    for verb, task_id, lane_id, level, attempt, worker_id, seconds in _decoder.decode(entry):
        lane = None if task_id is None else lane_of(lane_id)
        yield Event(
            cursor=cursor,
            verb=verb,
            at=time,
            task_id=task_id,
            type=None if lane is None else lane.type,
            queue=None if lane is None else lane.queue,
            level=None if task_id is None else level,
            attempt=None if task_id is None else attempt,
            worker_id=worker_id,
            seconds=seconds,
        )
