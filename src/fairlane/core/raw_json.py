"""Checks of JSON that stays as it was sent. Nothing is built from it.

Python objects take up to twenty times the memory of their JSON, and walking through them takes
longer than an event loop may be held. So these checks use operations on bytes only.
"""

from __future__ import annotations

import json
import math
import re
from codecs import getincrementaldecoder
from collections.abc import Iterator
from itertools import accumulate
from operator import add
from typing import Any, Final

import msgspec

from fairlane.core import limits


class NotJson(ValueError):
    """This is not JSON."""


class TooDeep(ValueError):
    """This JSON is nested too deeply."""


_raw: Final = msgspec.json.Decoder(msgspec.Raw)
_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items: Final = msgspec.json.Decoder(list[msgspec.Raw])

_utf8: Final = getincrementaldecoder("utf-8")
_PIECE: Final = 64 * 1024
_INTEGER_DIGITS: Final = 4_300
"""Python refuses to read longer integers."""


def check_json(value: bytes) -> None:
    """Raise NotJson or TooDeep unless every reader of JSON can read this."""
    try:
        check_utf8(value)
        _raw.decode(value)  # checks the grammar, and texts but for their UTF-8
    except RecursionError:
        raise TooDeep from None
    except msgspec.DecodeError as error:
        raise NotJson(str(error)) from None
    check_bounds(value)


def check_bounds(value: bytes) -> None:
    """Raise NotJson or TooDeep unless every reader can read this, which is JSON in UTF-8."""
    size = len(value)
    # A text that is shorter than that has not enough brackets.
    if size > limits.JSON_DEPTH and may_be_deep(value) and _depth(value) > limits.JSON_DEPTH:
        raise TooDeep
    if _has_large_numbers(value):
        _check_large_numbers(value)


def check_utf8(value: bytes) -> None:
    """Raise NotJson unless this is UTF-8. As a whole, decoding takes up to four times its size."""
    if value.isascii():
        return
    decoder = _utf8()
    for start in range(0, len(value), _PIECE):
        piece = value[start : start + _PIECE]
        try:
            decoder.decode(piece, final=start + _PIECE >= len(value))
        except UnicodeDecodeError as error:
            raise NotJson(f"it is not UTF-8 ({error.reason}, after byte {start:,})") from None


def build(value: bytes) -> Any:
    """Return what valid JSON stands for, in a time that depends on its size alone.

    msgspec takes 18 µs for a number such as 1e308, a hundred times longer than for others.
    """
    slow = _has_large_numbers(value) or b"e-000" in value.translate(_SHAPES)
    return json.loads(value) if slow else msgspec.json.decode(value)


def members_of(value: bytes) -> dict[str, bytes]:
    """Return the members of a JSON object, each byte for byte. Raises ValueError for other JSON."""
    return {name: bytes(member) for name, member in _members.decode(value).items()}


def items_of(value: bytes) -> list[bytes]:
    """Return the items of a JSON array, each byte for byte. Raises ValueError for other JSON."""
    return [bytes(item) for item in _items.decode(value)]


def may_be_deep(value: bytes) -> bool:
    """Return whether JSON has brackets enough to be nested too deeply."""
    most = limits.JSON_DEPTH
    return len(value) > most and value.count(b"{") + value.count(b"[") > most


# -- texts -----------------------------------------------------------------------------------------


def _table(default: bytes, *groups: tuple[bytes, bytes]) -> bytes:
    """Return a table for `bytes.translate`. Each group: characters, and what replaces them."""
    table = bytearray(default * 256)
    for characters, replacement in groups:
        for character in characters:
            table[character] = ord(replacement)
    return bytes(table)


def _outside_texts(value: bytes, table: bytes) -> Iterator[bytes]:
    """Yield pieces of valid JSON without its texts, translated. The table keeps quotation marks,
    and turns what is not needed into spaces."""
    plain = value.replace(b"\\\\", b"").replace(b'\\"', b"").translate(table)
    inside = 0
    start = 0
    while start < len(plain):
        end = plain.find(b" ", start + _PIECE)  # not within a number
        piece = plain[start:] if end < 0 else plain[start:end]
        parts = piece.split(b'"')
        yield b"".join(parts[inside::2])
        inside ^= (len(parts) - 1) & 1
        start += len(piece)


# -- numbers ---------------------------------------------------------------------------------------

_DIGITS: Final = b"0123456789"
_SHAPES: Final = _table(b" ", (_DIGITS, b"0"), (b"eE", b"e"), (b"+", b"+"), (b"-", b"-"))
_NUMBERS: Final = _table(b" ", *((bytes([each]),) * 2 for each in _DIGITS + b'+-.eE"'))

_EXPONENT, _POSITIVE_EXPONENT, _MANY_DIGITS = b"e000", b"e+000", b"0" * 200
_EXPONENTS: Final = re.compile(rb"[eE]\+?[0-9]{3}")
_LARGE: Final = (_EXPONENT, _POSITIVE_EXPONENT, _MANY_DIGITS)
"""Shapes of numbers that may be out of range: a three-digit exponent, or many digits."""


def _has_large_numbers(value: bytes) -> bool:
    """Return whether something has the shape of a large number. Every submission passes here."""
    if len(value) < len(_MANY_DIGITS):
        return _EXPONENTS.search(value) is not None  # the same, faster for short texts
    shape = value.translate(_SHAPES)
    return _EXPONENT in shape or _POSITIVE_EXPONENT in shape or _MANY_DIGITS in shape


def _check_large_numbers(value: bytes) -> None:
    count = 0
    for piece in _outside_texts(value, _NUMBERS):
        for number in _large_numbers(piece):
            count += 1
            if count > limits.LARGE_NUMBERS:
                raise NotJson(f"it has more than {limits.LARGE_NUMBERS:,} very large numbers")
            whole = number.lstrip(b"-").isdigit()
            if math.isinf(float(number)) and not (whole and len(number) <= _INTEGER_DIGITS):
                raise NotJson("a number is out of range")


def _large_numbers(piece: bytes) -> Iterator[bytes]:
    shape = piece.translate(_SHAPES)
    for mark in _LARGE:
        at = shape.find(mark)
        while at >= 0:
            end = piece.find(b" ", at)
            end = len(piece) if end < 0 else end
            yield piece[piece.rfind(b" ", 0, at) + 1 : end]
            at = shape.find(mark, end)


# -- depth -----------------------------------------------------------------------------------------

_BRACKETS: Final = _table(b" ", (b"[{", b"1"), (b"]}", b"0"), (b'"', b'"'))


def _steps(brackets: int) -> list[int]:
    """Return the depth after each of eight brackets, which are bits: 1 opens, 0 closes."""
    return list(accumulate(1 if brackets >> bit & 1 else -1 for bit in range(7, -1, -1)))


_NET: Final = [_steps(brackets)[-1] for brackets in range(256)]
_PEAK: Final = [max(_steps(brackets)) for brackets in range(256)]


def _depth(value: bytes) -> int:
    """Return how deeply valid JSON is nested. Looks at eight brackets at a time."""
    bits = b"".join(_outside_texts(value, _BRACKETS)).replace(b" ", b"")
    size = -(-len(bits) // 8)
    packed = int(bits or b"0", 2).to_bytes(size, "big")
    # The number may begin with a few zeros more, which stand for closing brackets.
    levels = accumulate(map(_NET.__getitem__, packed), initial=8 * size - len(bits))
    peaks: Iterator[int] = map(add, levels, map(_PEAK.__getitem__, packed))
    return max(peaks)
