"""`/api/v1/settings`: the settings of the store."""

from __future__ import annotations

from typing import Final

import msgspec

from fairlane.core.audit import Action
from fairlane.core.store_settings import StoreSettings
from fairlane.server.operations import ADMIN, READ, Call, Operation
from fairlane.server.responses import Response
from fairlane.server.services import Services
from fairlane.wire.settings import SettingsPatch


async def get_settings(services: Services, call: Call[None, None]) -> Response:  # noqa: ARG001
    """Read how tasks age, how long things are kept, and over which time the tasks of dead workers
    come back. Times are in seconds."""
    return Response(await services.run(services.ops.settings()))


async def patch_settings(services: Services, call: Call[SettingsPatch, None]) -> Response:
    """Change how tasks age, how long things are kept, or over which time the tasks of dead workers
    come back. Settings hold for every process, from the next claim or death on. With a `version`
    that is not the current one, nothing is changed (409)."""
    patch = call.body
    version = None if isinstance(patch.version, msgspec.UnsetType) else patch.version
    op = services.ops.change_settings(patch.changes, version=version)
    return Response(await services.run(op))


OPERATIONS: Final = [
    Operation("GET", "/api/v1/settings", get_settings, READ, returns=StoreSettings),
    Operation(
        "PATCH",
        "/api/v1/settings",
        patch_settings,
        ADMIN,
        body=SettingsPatch,
        returns=StoreSettings,
        action=Action.CHANGE_SETTINGS,
    ),
]
