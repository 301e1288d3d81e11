"""Quotas of callers: how much of what all share they may make."""

from __future__ import annotations

from collections.abc import Sequence

from fairlane.core.quotas import Made
from fairlane.core.tokens import Scope
from fairlane.server.auth import Identity
from fairlane.server.services import Services


async def take_quota(
    services: Services, identity: Identity, made: Made, names: Sequence[str]
) -> None:
    """Raise InvalidInput if the caller may not make these. An admin may, and so may all where there
    are no tokens."""
    subject = identity.subject or identity.token_id
    if subject is not None and Scope.ADMIN not in identity.scopes:
        await services.run(services.ops.take_quota(made, subject, names))
