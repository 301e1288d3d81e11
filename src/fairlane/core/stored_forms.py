"""Values in which Fairlane stores others, and results of users that only look like them.

A store has compressed results as `{"$zstd":"…"}` and sealed ones as `{"$sealed":"…"}`, always
without white space. A handler may return such an object, too. Its result gets a space after the
brace: to every reader of JSON it is the same value, and nobody takes it for one of Fairlane's.
"""

from __future__ import annotations

from typing import Final

CODEC: Final = b'{"$codec":'
"""How values begin that a codec has encoded: see `fairlane.runtime.codecs`."""
_OF_STORES: Final = (b'{"$zstd":', b'{"$sealed":', b'{"$blob":')


def plain(result: bytes, *, codec: bool = False) -> bytes:
    """Return a result that no reader takes for a stored form.

    `codec`: it may say that a codec has encoded it, because one may have.
    """
    looks = result.startswith(_OF_STORES) or (not codec and result.startswith(CODEC))
    return b"{ " + result[1:] if looks else result
