"""Zstandard."""

from __future__ import annotations

import threading
from typing import Final

import zstandard

from fairlane.core import limits

LEVEL: Final = 3

_local: Final = threading.local()
"""A compressor is for one thread at a time."""


def compress(plain: bytes) -> bytes:
    """Return the compressed data, with a checksum."""
    compressor: zstandard.ZstdCompressor | None = getattr(_local, "compressor", None)
    if compressor is None:
        compressor = _local.compressor = zstandard.ZstdCompressor(LEVEL, write_checksum=True)
    return compressor.compress(plain)


def decompress(data: bytes) -> bytes:
    """Return the plain data. Raises ValueError if it is damaged, or larger than results may be."""
    try:
        if zstandard.frame_content_size(data) > limits.RESULT_BYTES:
            raise ValueError("It is larger than a result may be.")
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=limits.RESULT_BYTES)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None
