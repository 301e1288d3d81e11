"""Operations that are not available over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from fairlane.core.errors import NotSupported
from fairlane.core.flow import Mode, Op

OWN = "The server does this itself: to do it from here, use the store's own URL."
AUDIT = "A server writes its audit log itself."
TOKENS = "A server does not manage tokens over HTTP: use the store's own URL."
BLOBS = "A server does not offer its blobs over HTTP: use the store's own URL."
ENCRYPTION = "A server does not decide about encryption over HTTP: use the store's own URL."


def unsupported(name: str, why: str) -> Callable[..., Op[Any]]:
    """Return an operation that raises NotSupported."""

    def refuse() -> NoReturn:
        raise NotSupported(f"{why} ({name})")

    def build(*_: Any, **__: Any) -> Op[Any]:
        return Op(name, Mode.READ, refuse)

    return build
