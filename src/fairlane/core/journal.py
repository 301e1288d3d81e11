"""The journal: what happened, in the order it took effect.

Each engine transaction appends one entry that holds all its transitions. The journal feeds live
events and history; readers come back with a cursor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from fairlane.core.ids import pack, unpack
from fairlane.core.lanes import Lane
from fairlane.core.model import Event, moment


class Passage(msgspec.Struct, frozen=True):
    """Tasks of one lane and level that went through the same transition at once.

    The lists run in parallel; empty ones stand for attempt 0 and for no duration. Without task
    ids it tells of the worker itself.
    """

    verb: str
    worker_id: str | None = None
    lane: int = 0
    level: int = 0
    task_ids: Sequence[str] = ()
    attempts: Sequence[int] = ()
    seconds: Sequence[float | None] = ()

    def events(
        self, cursor: str, at: int, lane_of: Callable[[int], Lane | None]
    ) -> Iterator[Event]:
        """Return the transitions one by one."""
        time = moment(at)
        if not self.task_ids:
            yield Event(cursor=cursor, verb=self.verb, at=time, worker_id=self.worker_id)
            return
        lane = lane_of(self.lane)
        for number, task_id in enumerate(self.task_ids):
            yield Event(
                cursor=cursor,
                verb=self.verb,
                at=time,
                task_id=task_id,
                type=None if lane is None else lane.type,
                queue=None if lane is None else lane.queue,
                level=self.level,
                attempt=self.attempts[number] if self.attempts else 0,
                worker_id=self.worker_id,
                seconds=self.seconds[number] if self.seconds else None,
            )


_Stored = tuple[str, str | None, int, int, bytes, list[int], list[float | None]]
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[_Stored])


def encode(passages: Sequence[Passage]) -> bytes:
    """Return an entry as an engine may store it: ids take 16 bytes each."""
    return _encoder.encode(
        [
            (
                passage.verb,
                passage.worker_id,
                passage.lane,
                passage.level,
                pack(passage.task_ids),
                passage.attempts,
                passage.seconds,
            )
            for passage in passages
        ]
    )


def decode(entry: bytes) -> list[Passage]:
    """Return what `encode` was given."""
    return [
        Passage(verb, worker_id, lane, level, unpack(ids), attempts, seconds)
        for verb, worker_id, lane, level, ids, attempts, seconds in _decoder.decode(entry)
    ]


Place = tuple[int, ...]


def place_of(cursor: str) -> Place:
    """Return the place of a cursor. Places of one store can be compared, whatever its engine.

    Raises ValueError for what no engine made.
    """
    return tuple(map(int, cursor.split("-")))
