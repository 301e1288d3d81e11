"""Codecs: what an application uses in place of JSON for the arguments and results of a task.

JSON is still what is stored and sent: a codec turns values into JSON values, and back.

    {"$codec":"msgpack","data":…}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

import msgspec

from fairlane.core.errors import UnknownCodec
from fairlane.core.stored_forms import CODEC
from fairlane.core.text import shown
from fairlane.runtime.values import encoded

RESERVED: Final = b'{"$'
"""How payloads and results begin that Fairlane has made: sealed, by reference, with a codec."""


@runtime_checkable
class Codec(Protocol):
    """Turns values into JSON values, and back.

    The arguments of a call are a dict by name. Results are whatever handlers return.
    """

    def encode(self, value: Any) -> Any:
        """Return the value as dicts, lists, texts, numbers, booleans and None."""

    def decode(self, value: Any) -> Any:
        """Return the value that `encode` was given."""


class NamedCodec(NamedTuple):
    """A codec with the name by which values say how they were encoded."""

    name: str
    codec: Codec

    def encode(self, value: Any) -> bytes:
        """Return a value as it is stored. Raises what the codec raises."""
        return encoded({"$codec": self.name, "data": self.codec.encode(value)})


class _Stored(msgspec.Struct, forbid_unknown_fields=True):
    data: Any
    codec: str = msgspec.field(name="$codec")


_decoder: Final = msgspec.json.Decoder(_Stored)


def find(codecs: Mapping[str, Codec], name: str) -> NamedCodec:
    """Return the codec of this name. Raises UnknownCodec."""
    if not isinstance(name, str) or name not in codecs:
        known = ", ".join(sorted(codecs)) or "none"
        raise UnknownCodec(
            f"There is no codec {shown(name)} here: register it with app.codec(name, codec) before "
            f"it is used. Registered: {known}."
        )
    return NamedCodec(name, codecs[name])


def stored_with(value: bytes) -> _Stored | None:
    """Return what a stored value says of its codec; None for plain JSON."""
    if not value.startswith(CODEC):
        return None
    try:
        return _decoder.decode(value)
    except msgspec.MsgspecError:
        return None
