"""Writing to the audit log after a request has changed something."""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from fairlane.core.audit import Action, NewAudit
from fairlane.core.errors import StoreError
from fairlane.server.operations import Call
from fairlane.server.services import Services

logger = logging.getLogger("fairlane.audit")


async def record(services: Services, action: Action, call: Call[Any, Any]) -> None:
    """Write an audit entry for a request. The change is already made: if the entry cannot be
    written, log that and go on. What was changed is named by the path, or by the body's `names`."""
    asked = [part for part in (call.query, call.body) if part is not None]
    detail = {name: value for part in asked for name, value in _said(part).items()}
    entry = NewAudit.of(
        call.identity.name,
        action,
        " ".join(call.path.values()) or getattr(call.body, "names", ""),
        detail,
        address=call.address,
    )
    logger.info("%s: %s %s", entry.actor, entry.action, entry.subject)
    try:
        await services.run(services.ops.record([entry]))
    except StoreError as error:
        logger.warning("Not written to the audit log: %s %s: %s", entry.actor, entry.action, error)


def _said(request: msgspec.Struct) -> dict[str, Any]:
    """Return what a request says, without the payloads in it: those are for handlers only."""
    fields = zip(
        request.__struct_encode_fields__, msgspec.structs.asdict(request).values(), strict=True
    )
    return {
        name: _plain(value)
        for name, value in fields
        if value is not msgspec.UNSET and not isinstance(value, msgspec.Raw)
    }


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return _said(value)
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return msgspec.to_builtins(value)
