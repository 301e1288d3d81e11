"""What a request to change a workflow says, in JSON."""

from __future__ import annotations

from typing import Annotated

import msgspec

from fairlane.core import limits


class ResumeTerms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`from`: the name of a task that runs again although it is completed, with all that depend on
    it; null for none."""

    from_node: Annotated[str, msgspec.Meta(max_length=limits.NAME_LENGTH)] | None = msgspec.field(
        default=None, name="from"
    )
