"""Quotas: how much of what all share one subject may have made over the network.

A store keeps so many definitions and schedules, and whoever may act as a worker can make them. A
subject has a document for each kind with what it has made in the last 30 days, also if others have
changed it since. What it makes again counts once.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from hashlib import blake2b
from typing import Final, NamedTuple

import msgspec

from fairlane.core import limits
from fairlane.core.documents import Document, Documents, every, rewrites, write
from fairlane.core.errors import InvalidDefinition, InvalidInput, InvalidSchedule
from fairlane.core.flow import Flow
from fairlane.core.priority import MICROSECONDS


class Made(StrEnum):
    """What a quota is for."""

    DEFINITIONS = "definitions"
    SCHEDULES = "schedules"


class _Rule(NamedTuple):
    most: int
    refusal: type[InvalidInput]


_RULES: Final = {
    Made.DEFINITIONS: _Rule(limits.DEFINITIONS_OF_ONE, InvalidDefinition),
    Made.SCHEDULES: _Rule(limits.SCHEDULES_OF_ONE, InvalidSchedule),
}
_LIFE: Final = int(limits.QUOTA_SECONDS * MICROSECONDS)

Counted = dict[str, int]
"""What a subject has made: digests of names, and until when each counts (microseconds)."""

_decoder: Final = msgspec.json.Decoder(Counted)
_KIND: Final = "quota"


def counted(before: Counted, names: Sequence[str], now: int) -> Counted:
    """Return what counts for a subject that makes these now."""
    after = {name: until for name, until in before.items() if until > now}
    for name in map(_digest, names):
        if after.get(name, now) < now + _LIFE // 2:
            after[name] = now + _LIFE
    return after


def _digest(name: str) -> str:
    return blake2b(name.encode(), digest_size=8).hexdigest()


# Operations, see `store`.


@rewrites
def take_quota(self: Documents, made: Made, subject: str, names: Sequence[str]) -> Flow[None]:
    id, rule = f"{made}:{subject}", _RULES[made]
    now, (stored,) = yield from self.read_documents(_KIND, [id])
    before = {} if stored is None else _decoder.decode(stored.value)
    after = counted(before, names, now)
    if len(after) > rule.most:
        raise rule.refusal(
            f"{subject} has made {rule.most:,} {made} within {limits.QUOTA_SECONDS / 86_400:g} "
            "days, as many as one subject may. Remove some that are not needed."
        )
    if after != before:
        if stored is None:
            yield from self.expire_documents(_KIND, limits.BATCH)
        yield from write(self, _KIND, [_document(id, after, now, stored)])


def give_back(self: Documents, made: Made, name: str) -> Flow[None]:
    """Count something that is gone for nobody any more, inside any operation."""
    digest = _digest(name)
    now, stored = yield from every(self, _KIND)
    puts = []
    for each in stored:
        before = _decoder.decode(each.value)
        if each.id.startswith(f"{made}:") and before.pop(digest, None) is not None:
            puts.append(_document(each.id, before, now, each))
    if puts:
        yield from write(self, _KIND, puts)


def _document(id: str, content: Counted, now: int, stored: Document | None) -> Document:
    version = 0 if stored is None else stored.version
    expires_at = max(content.values(), default=now)
    return Document(id, msgspec.json.encode(content), now, expires_at, version=version)
