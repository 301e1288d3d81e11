"""Shares of lanes: how many of the lanes of a store one subject may have made over the network.

A store has a limited number of lanes. A subject has a document with those that it has made. A lane
leaves it once it is gone from the store, which `unused_lanes` looks after. Until a submission has
made it, a lane counts for a while without being there. Lanes that are in the store already
are not counted for a subject that only uses them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final

import msgspec

from fairlane.core import limits
from fairlane.core.documents import Document, Documents, every, rewrites, write
from fairlane.core.errors import TooManyLanes
from fairlane.core.flow import Flow
from fairlane.core.lanes import LaneKey
from fairlane.core.priority import MICROSECONDS

Made = dict[str, int]
"""The lanes that a subject has made: digests of their keys, and when each was counted
(microseconds)."""

_KIND: Final = "lane_share"
_UNMADE: Final = int(limits.UNMADE_LANE_SECONDS * MICROSECONDS)
_decoder: Final = msgspec.json.Decoder(Made)


def counted(before: Made, lanes: Iterable[LaneKey], now: int) -> Made:
    """Return what counts for a subject that makes these lanes now."""
    after = dict(before)
    for digest in map(_digest, lanes):
        if after.get(digest, 0) < now - _UNMADE // 2:
            after[digest] = now
    return after


def remaining(made: Made, there: set[str], now: int) -> Made:
    """Return what goes on to count if the store has the lanes with these digests."""
    return {digest: at for digest, at in made.items() if digest in there or at > now - _UNMADE}


def _digest(lane: LaneKey) -> str:
    return blake2b(msgspec.json.encode(lane), digest_size=8).hexdigest()


def give_lanes_back(self: Documents, lanes: Iterable[LaneKey]) -> Flow[None]:
    """Take lanes that are gone out of the shares, inside any operation. `lanes` are all that the
    store has."""
    now, stored = yield from every(self, _KIND)
    there = set(map(_digest, lanes)) if stored else set()
    puts, drops = [], []
    for each in stored:
        before = _decoder.decode(each.value)
        after = remaining(before, there, now)
        if not after:
            drops.append(each)
        elif after != before:
            puts.append(_document(each.id, after, now, each))
    if puts or drops:
        yield from write(self, _KIND, puts, drops)


# The operation, see `store`.


@rewrites
def take_lanes(self: Documents, subject: str, lanes: Sequence[LaneKey]) -> Flow[None]:
    now, (stored,) = yield from self.read_documents(_KIND, [subject])
    before = {} if stored is None else _decoder.decode(stored.value)
    after = counted(before, lanes, now)
    if len(after) > limits.LANES_OF_ONE:
        raise TooManyLanes(
            f"{subject} has made {len(before):,} combinations of queue, type and capabilities, and "
            f"one subject may have made {limits.LANES_OF_ONE:,}. Put what varies from task to task "
            "into the payload or the tags instead. Combinations without tasks are forgotten after "
            "a while."
        )
    if after != before:
        yield from write(self, _KIND, [_document(subject, after, now, stored)])


def _document(subject: str, made: Made, now: int, stored: Document | None) -> Document:
    version = 0 if stored is None else stored.version
    return Document(subject, msgspec.json.encode(made), now, version=version)
