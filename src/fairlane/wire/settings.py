"""Changes to the settings of the store. They are shown as `core/store_settings.py` has them."""

from __future__ import annotations

import msgspec

from fairlane.core.store_settings import AGING, REQUEUE_SPREAD, RETENTION, Changes
from fairlane.wire.values import Delay, Kept, Spread


class _AgingPatch(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """After how many seconds of readiness a band counts as the next one. Null: never."""

    low_to_medium: Delay | msgspec.UnsetType | None = msgspec.UNSET
    medium_to_high: Delay | msgspec.UnsetType | None = msgspec.UNSET
    high_to_critical: Delay | msgspec.UnsetType | None = msgspec.UNSET


class _RetentionPatch(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """For how many seconds ended tasks, dead workers and journal entries are kept."""

    completed: Kept | msgspec.UnsetType = msgspec.UNSET
    failed: Kept | msgspec.UnsetType = msgspec.UNSET
    cancelled: Kept | msgspec.UnsetType = msgspec.UNSET
    dead_letter: Kept | msgspec.UnsetType = msgspec.UNSET
    workers: Kept | msgspec.UnsetType = msgspec.UNSET
    journal: Kept | msgspec.UnsetType = msgspec.UNSET


class SettingsPatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes to the settings of the store; what is left out stays.

    With `version`, they are only made if the settings still have it. `requeue_spread` is the number
    of seconds over which the tasks that a dead worker had started come back; 0: at once.
    """

    version: int | msgspec.UnsetType = msgspec.UNSET
    aging: _AgingPatch | msgspec.UnsetType = msgspec.UNSET
    retention: _RetentionPatch | msgspec.UnsetType = msgspec.UNSET
    requeue_spread: Spread | msgspec.UnsetType = msgspec.UNSET

    @property
    def changes(self) -> dict[str, float | None]:
        """The new values by their names."""
        parts = [part for part in (self.aging, self.retention) if part is not msgspec.UNSET]
        changes = {
            name: value for part in parts for name, value in msgspec.to_builtins(part).items()
        }
        if self.requeue_spread is not msgspec.UNSET:
            changes[REQUEUE_SPREAD] = self.requeue_spread
        return changes


def patch_of(changes: Changes, version: int | None) -> dict[str, object]:
    """Return a SettingsPatch as it is sent."""
    groups = {"aging": AGING, "retention": RETENTION}
    patch: dict[str, object] = {
        group: {name: changes[name] for name in names if name in changes}
        for group, names in groups.items()
    }
    if REQUEUE_SPREAD in changes:
        patch[REQUEUE_SPREAD] = changes[REQUEUE_SPREAD]
    return patch if version is None else {**patch, "version": version}
