"""Identifiers: UUID version 7, which sort by the time they were made.

Ids made in one process strictly increase, also within a millisecond, so that tasks submitted in
one batch keep their order. Time order keeps database indexes local.
"""

from __future__ import annotations

import os
import re
import struct
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeGuard

from fairlane.core import limits
from fairlane.core.errors import BatchTooLarge, InvalidTaskId
from fairlane.core.text import shown

_ID: Final = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_SHAPE: Final = re.compile(rf"{_ID}\Z")
_ZERO: Final = "00000000-0000-0000-0000-000000000000"
_DIGITS: Final = [place for place, character in enumerate(_ZERO) if character == "0"]
"""Where an id has its digits."""
_MANY: Final = 16
_ZEROS: Final = str.maketrans("0123456789abcdef", "0" * 16)

PACKED: Final = 16
"""Bytes per packed id."""

_VARIANT = 0x2 << 62
_RANDOM_BITS = 62
_HEAD = "%08x-%04x-7%03x-"
_TAIL = "%04x-%012x"
_lock = threading.Lock()
_last_tick = 0
_last_random = 0


def _numbers() -> Iterator[int]:
    """Random ones of 64 bits; the kernel is asked for many at once."""
    while True:
        yield from struct.unpack("=256Q", os.urandom(2048))


_noise = _numbers()


def new_ids(count: int) -> list[str]:
    """`count` fresh ids in ascending order."""
    tick, first = _reserved(count)
    head = _HEAD % (tick >> 28, tick >> 12 & 0xFFFF, tick & 0xFFF)
    return [
        head + _TAIL % (number >> 48, number & 0xFFFF_FFFF_FFFF)
        for number in range(first, first + count)
    ]


def new_id() -> str:
    """Return one fresh id."""
    tick, number = _reserved(1)
    # As in `new_ids`, but every submission passes here, and formatting numbers takes longer.
    high, low = tick.to_bytes(8, "big").hex(), number.to_bytes(8, "big").hex()
    return f"{high[1:9]}-{high[9:13]}-7{high[13:]}-{low[:4]}-{low[4:]}"


def new_run(count: int) -> str:
    """Return a fresh id such that the next `count` ids are fresh, too: see `numbered`."""
    tick, number = _reserved(count + 1)
    head = _HEAD % (tick >> 28, tick >> 12 & 0xFFFF, tick & 0xFFF)
    return head + _TAIL % (number >> 48, number & 0xFFFF_FFFF_FFFF)


def _reserved(count: int) -> tuple[int, int]:
    """Reserve `count` numbers for a tick; return the tick and the first number."""
    # 48 bits of milliseconds and 12 of fractions of one make the time part (RFC 9562, method 3);
    # the 62 random bits start in their lower half and grow by one per id within the same tick.
    global _last_tick, _last_random
    with _lock:
        tick = time.time_ns() * 4096 // 1_000_000
        if tick <= _last_tick:
            tick, first = _last_tick, _last_random + 1
        else:
            first = _VARIANT | next(_noise) >> (64 - _RANDOM_BITS + 1)
        _last_tick, _last_random = tick, first + count
    return tick, first


def numbered(id: str, number: int) -> str:
    """Return the id that comes so many places after another: always the same. After the last id
    comes the first."""
    return dashed(f"{(int(id.replace('-', ''), 16) + number) % 2**128:032x}")


def pack(ids: Iterable[str]) -> bytes:
    """Return ids as they are written down in bulk: 16 bytes each."""
    return bytes.fromhex("".join(ids).replace("-", ""))


def unpack(packed: bytes) -> list[str]:
    """Return what `pack` was given."""
    if len(packed) < _MANY * PACKED:
        starts = range(0, len(packed), PACKED)
        return [dashed(packed[start : start + PACKED].hex()) for start in starts]
    # One digit of all ids at a time takes a fraction of the time of one id at a time.
    digits = packed.hex().encode()
    line = f"{_ZERO} ".encode()
    lines = bytearray(line * (len(packed) // PACKED))
    for at, place in enumerate(_DIGITS):
        lines[place :: len(line)] = digits[at :: len(_DIGITS)]
    return lines.decode().split()


def is_id(value: object) -> TypeGuard[str]:
    """Return whether `text` is an id in canonical form."""
    return isinstance(value, str) and _SHAPE.match(value) is not None


def checked(task_id: object) -> str:
    """Return the id, if it is one in canonical form."""
    if is_id(task_id):
        return task_id
    raise InvalidTaskId(f"{InvalidTaskId.__doc__} Got {shown(task_id)}.")


def checked_all(task_ids: Sequence[str], most: int = limits.BATCH) -> None:
    """Raise unless these are at most `most` ids, each in canonical form."""
    if len(task_ids) > most:
        raise BatchTooLarge(f"At most {most:,} tasks are handled at once, not {len(task_ids):,}.")
    # All at once: this is the hot path. With zeros for its digits, every id looks the same.
    alike = "".join(task_ids).translate(_ZEROS) == _ZERO * len(task_ids)
    if not alike or {*map(len, task_ids)} - {len(_ZERO)}:
        checked(next(each for each in task_ids if not _SHAPE.match(each)))


def _start_over() -> None:
    """Reset the counter in a forked child, which must not share it with its parent."""
    global _last_tick, _last_random, _noise
    _last_tick, _last_random, _noise = 0, 0, _numbers()


os.register_at_fork(after_in_child=_start_over)


def dashed(digits: str) -> str:
    """Return an id from its 32 hexadecimal digits."""
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
