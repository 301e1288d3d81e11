"""Compressed results: the form in which a store holds a large result.

    {"$zstd":"<base64>"}

It is JSON like any other, so every engine stores it, and a view or a reader without the library can
still show it. A result that is damaged carries a mark for readers, `"$broken":true`, which is
never stored. How results are compressed is in `fairlane.engines.compression`.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64encode
from typing import Final

from fairlane.core.errors import InvalidLimit, ResultDamaged
from fairlane.core.extras import missing_extra
from fairlane.core.text import shown

_OPENING: Final = b'{"$zstd":"'
_CLOSING: Final = b'"}'
_CLOSING_BROKEN: Final = b'","$broken":true}'

_BASE64: Final = re.compile(rb"[A-Za-z0-9+/=]*")


def compression_limit(value: object) -> int:
    """Return the size above which results are compressed. Raises InvalidLimit."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidLimit(
            f"compress_results is a number of bytes, one or more. Got {shown(value)}."
        )
    return value


def stored_form(data: bytes) -> bytes:
    """Return compressed data as it is stored."""
    return b"%b%b%b" % (_OPENING, b64encode(data), _CLOSING)


def is_compressed(value: bytes) -> bool:
    """Return whether a stored result says that it is compressed."""
    return value.startswith(_OPENING)


def data_of(value: bytes) -> bytes:
    """Return the compressed data in a stored result. Raises ValueError if it is damaged."""
    if not value.endswith(_CLOSING):
        raise ValueError("It does not end as it should.")
    return binascii.a2b_base64(value[len(_OPENING) : -len(_CLOSING)], strict_mode=True)


def damaged(value: bytes) -> bytes:
    """Return a stored result that cannot be expanded, for readers."""
    body = value.removeprefix(_OPENING).removesuffix(_CLOSING)
    legible = body if _BASE64.fullmatch(body) else b""  # what is shown must be JSON
    return b"%b%b%b" % (_OPENING, legible, _CLOSING_BROKEN)


def check_expanded(value: bytes) -> None:
    """Raise ResultDamaged or DriverMissing for what is still compressed when it is to be used."""
    if not is_compressed(value):
        return
    if value.endswith(_CLOSING_BROKEN):
        raise ResultDamaged
    raise missing_extra(
        "This result is compressed, and the library for that is not installed", "compression"
    )
