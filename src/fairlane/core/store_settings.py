"""Settings of a store: how tasks age, how long things are kept, when tasks of dead workers return.

They are kept in the store and are the same for every process that uses it. Claims read them with
the lanes and controls, and check only that these have not changed; so an engine gives its catalogue
a new version in the same step in which it writes the settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from fairlane.core import limits
from fairlane.core.documents import Document, Documents, Overtaken, Written, rewrites
from fairlane.core.errors import InvalidSetting, SettingsConflict
from fairlane.core.flow import Flow, reads
from fairlane.core.priority import Aging
from fairlane.core.retention import Retention, checked
from fairlane.core.text import shown

Changes = Mapping[str, float | None]
"""New values, in seconds, by the names of the settings."""

AGING, RETENTION = Aging.__struct_fields__, Retention.__struct_fields__
REQUEUE_SPREAD = "requeue_spread"
NAMES = (*AGING, *RETENTION, REQUEUE_SPREAD)

replace = msgspec.structs.replace


class StoreSettings(msgspec.Struct, frozen=True):
    """`requeue_spread`: over how many seconds the tasks that a dead worker had started come back;
    0: at once. `version` counts the changes; 0: nothing was ever set."""

    aging: Aging = Aging()
    retention: Retention = Retention()
    requeue_spread: float = 0.0
    version: int = 0

    def values(self) -> dict[str, float | None]:
        """Return all values by their names."""
        groups = {**msgspec.structs.asdict(self.aging), **msgspec.structs.asdict(self.retention)}
        return {**groups, REQUEUE_SPREAD: self.requeue_spread}

    def with_changes(self, changes: Changes) -> StoreSettings:
        """Return the settings with new values. Raises an InvalidInput if one makes no sense."""
        unknown = sorted(name for name in changes if name not in NAMES)
        if unknown:
            raise InvalidSetting(
                f"There is no setting {', '.join(map(shown, unknown))}: the settings of a store "
                f"are {', '.join(NAMES)}."
            )
        retention = replace(self.retention, **_only(RETENTION, changes))
        return replace(
            self,
            aging=replace(self.aging, **_only(AGING, changes)),
            retention=checked(retention, limits.RETENTION_SECONDS_LEAST),
            requeue_spread=_spread(changes.get(REQUEUE_SPREAD, self.requeue_spread)),
        )


DEFAULT = StoreSettings()


def changes_to(
    aging: Aging | None, retention: Retention | None, requeue_spread: float | None = None
) -> dict[str, float | None]:
    """Return the changes that set all values of these. Raises an InvalidInput if one makes no
    sense."""
    found: dict[str, float | None] = {}
    for given in (aging, retention):
        found |= {} if given is None else msgspec.structs.asdict(given)
    if requeue_spread is not None:
        found[REQUEUE_SPREAD] = requeue_spread
    DEFAULT.with_changes(found)
    return found


def _spread(seconds: Any) -> float:
    if (
        isinstance(seconds, int | float)
        and not isinstance(seconds, bool)
        and 0 <= seconds <= limits.REQUEUE_SPREAD_SECONDS
    ):
        return seconds
    raise InvalidSetting(
        f"{REQUEUE_SPREAD}, the time over which the tasks of dead workers come back, is a number "
        f"of seconds from 0 (at once) to {limits.REQUEUE_SPREAD_SECONDS:,.0f}. "
        f"Got {shown(seconds)}."
    )


def _only(names: Sequence[str], changes: Changes) -> dict[str, Any]:
    return {name: changes[name] for name in names if name in changes}


# As a document: a JSON object with the values that were ever set. The rest are defaults.

SETTINGS = "settings"
"""The kind of the document, and its id: there is only one."""

_values_decoder = msgspec.json.Decoder(dict[str, float | None])


def aging_in(value: bytes | None) -> Aging:
    """Return how tasks age, out of the settings' document; None: there is no document."""
    return DEFAULT.aging if value is None else Aging(**_only(AGING, _values_decoder.decode(value)))


def _settings_of(stored: Document | None) -> StoreSettings:
    """Return the settings. Names that only a newer Fairlane knows are left out."""
    if stored is None:
        return DEFAULT
    values = _values_decoder.decode(stored.value)
    retention = Retention(**_only(RETENTION, values))
    spread = values.get(REQUEUE_SPREAD) or DEFAULT.requeue_spread
    return StoreSettings(aging_in(stored.value), retention, spread, stored.version)


# Operations, see `store`.


class Adjustable(Documents, Protocol):
    """What an engine implements besides documents."""

    def write_settings(self, document: Document) -> Flow[Written]:
        """Write the settings' document, and give the catalogue a new version, in one step."""


@reads
def settings(self: Documents) -> Flow[StoreSettings]:
    _, (stored,) = yield from self.read_documents(SETTINGS, [SETTINGS])
    return _settings_of(stored)


@rewrites
def change_settings(
    self: Adjustable, changes: Changes, *, version: int | None = None
) -> Flow[StoreSettings]:
    now, (stored,) = yield from self.read_documents(SETTINGS, [SETTINGS])
    before = _settings_of(stored)
    after = before.with_changes(changes)
    if after == before:
        return before
    if version is not None and version != before.version:
        raise SettingsConflict(
            f"The settings have version {before.version}, not {version}: another process has "
            "changed them. Read them again, and repeat the change if it still makes sense."
        )
    values = ({} if stored is None else _values_decoder.decode(stored.value)) | dict(changes)
    new = Document(SETTINGS, msgspec.json.encode(values), now, version=before.version)
    if (yield from self.write_settings(new)) is Written.OVERTAKEN:
        raise Overtaken
    return replace(after, version=before.version + 1)
