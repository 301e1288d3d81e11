"""Say why a module of the application cannot be imported: what is wrong, where, and what to do."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Final

import fairlane
from fairlane.core.extras import EXTRA_OF, command_for
from fairlane.runtime.execution import text_of

_FAIRLANE: Final = f"{Path(fairlane.__file__).parent}/"
_CIRCULAR: Final = "circular import"
"""Python says this of a module that it has not finished importing."""


def import_failure(what: str, error: Exception) -> str:
    """Return the error, its place in the user's code, and what to do."""
    if isinstance(error, SyntaxError):
        return f"{what} cannot be imported: {error.msg} ({error.filename}, line {error.lineno})."
    text = text_of(error)
    said = f"{what} cannot be imported: {type(error).__name__}: {text}{_place(error)}."
    return f"{said}{_advice(error, text)}"


def _place(error: Exception) -> str:
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "importlib" not in frame.filename and not frame.filename.startswith(_FAIRLANE)
    ]
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


def _advice(error: Exception, text: str) -> str:
    if _CIRCULAR in text:
        return (
            " Modules import each other: put the application into a module that imports none of "
            "those that define its tasks."
        )
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return ""  # the error is in the user's code, at that place
    extra = EXTRA_OF.get(error.name)
    if extra is not None:
        return f" Install it: {command_for(extra)}."
    return f" Install {error.name} into this environment, or start in the folder that has it."
