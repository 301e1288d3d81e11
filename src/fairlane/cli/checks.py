"""What `doctor` reports: checks, and what they found."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class CheckStatus(StrEnum):
    """The result of a check."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"


class Check(msgspec.Struct, frozen=True):
    """What was checked, and what was found."""

    check: str
    status: CheckStatus
    message: str
