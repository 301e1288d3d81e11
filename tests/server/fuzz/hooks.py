"""What cannot be said in JSON Schema, and so is not sent as if it were right."""

from __future__ import annotations

from typing import Any

import schemathesis
from schemathesis import Case, GenerationMode, HookContext
from schemathesis.core import NotSet

UNFORESEEABLE = frozenset({"depends_on", "idempotency_key", "inputs", "workflow", "workflow_id"})
"""Whether these are right depends on what tasks there are."""
SHORT = 0.01
"""Seconds to wait for what will not come."""


@schemathesis.hook
def map_case(_: HookContext, case: Case[Any]) -> Case[Any]:
    """Valid requests stay valid: of integers JSON Schema admits 1.0, for us that is a fraction."""
    if case.meta is not None and case.meta.generation.mode is GenerationMode.POSITIVE:
        if not isinstance(case.body, NotSet):  # set to nothing it counts as wrong, though optional
            case.body = _plain(case.body)
        if case.query:
            case.query = {name: _asked(name, value) for name, value in case.query.items()}
    return case


def _asked(name: str, value: Any) -> Any:
    if name == "tag":
        return value[:1]  # no task has two values of one
    return SHORT if name == "wait" else value


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value) if abs(value) < 2**53 else 0
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {
            name: SHORT if name == "wait_seconds" else _plain(each)
            for name, each in value.items()
            if name not in UNFORESEEABLE
        }
    return value
