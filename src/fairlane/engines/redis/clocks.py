"""bring_back: times that lie ahead of now, because the clock was set back, are corrected."""

from __future__ import annotations

from fairlane.core.flow import Flow, writes
from fairlane.engines.redis.context import Context
from fairlane.engines.redis.scripts import script

BRING_BACK = script("bring_back")


@writes
def bring_back(self: Context, cursor: str | None = None) -> Flow[str | None]:
    stream, _, skipped = (cursor or "").partition(" ")
    reply = yield from self.call(BRING_BACK, stream, skipped or 0)
    if not reply:
        return None
    stream = reply[0].decode()
    return f"{stream} {int(reply[1])}" if stream else ""
