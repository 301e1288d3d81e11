"""What a server does itself, or keeps to itself: nobody asks for it over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from fairlane.core.errors import NotSupported
from fairlane.core.flow import Mode, Op

OWN = "The server does this itself: it takes the store's own URL to do it from here."
TOLD = "A server writes its audit log itself, for whatever is done through it."
TOKENS = (
    "A server gives no tokens away over HTTP: make, list, replace and revoke them where its store "
    "is, with the store's own URL."
)
SCHEDULES = "A server does not offer schedules over HTTP: use the store's own URL."


def unsupported(name: str, why: str) -> Callable[..., Op[Any]]:
    """An operation that is refused, whatever it is given."""

    def refuse() -> NoReturn:
        raise NotSupported(f"{why} ({name})")

    def build(*_: Any, **__: Any) -> Op[Any]:
        return Op(name, Mode.READ, refuse)

    return build
