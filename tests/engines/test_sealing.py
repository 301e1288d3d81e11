"""Every operation of the contract is known to the layer that seals, as sealed or as plain."""

from __future__ import annotations

import inspect

import pytest

from fairlane import engines
from fairlane.core.sealing import Key
from fairlane.core.store import Clock, Control, Inspect, Schema, Store
from fairlane.engines.sealing.operations import PLAIN, sealing_operations

SEALED = {
    "submit",
    "submit_workflow",
    "claim",
    "settle",
    "get",
    "page",
    "put_schedules",
    "pause_schedule",
    "resume_schedule",
    "schedules",
    "schedule_page",
    "put_blob",
    "blob",
}

CONTRACT = {
    name
    for protocol in (Store, Inspect, Control, Schema, Clock)
    for name, _ in inspect.getmembers(protocol, inspect.isfunction)
    if not name.startswith("_")
}


def test_an_operation_is_either_sealed_or_plain() -> None:
    assert SEALED | PLAIN == CONTRACT, "say of the new operation whether it carries what is sealed"
    assert not SEALED & PLAIN


def test_an_operation_that_is_in_neither_list_is_out_of_reach() -> None:
    ops = engines.open("sqlite://").ops
    ops.leak = lambda: None  # type: ignore[attr-defined]
    sealing = sealing_operations(ops, [Key("k", b"1" * 32)])
    with pytest.raises(AttributeError):
        sealing.leak()  # type: ignore[attr-defined]
    for name in CONTRACT:
        own = getattr(sealing, name) == getattr(ops, name)
        assert own is (name in PLAIN), name
