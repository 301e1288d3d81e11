"""Definitions of types in JSON: published by workers, read by submitters."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any

import msgspec

from fairlane.core import limits
from fairlane.core.definitions import Definition, Published
from fairlane.core.durations import in_seconds
from fairlane.core.priority import level_of, shown_as
from fairlane.core.uniqueness import Unique
from fairlane.wire.policies import RetryView
from fairlane.wire.submission import UniqueRequest
from fairlane.wire.times import Moment, iso, time_of
from fairlane.wire.values import (
    Capabilities,
    Delay,
    Level,
    NameText,
    PriorityName,
    Retries,
    Tags,
    Timeout,
)


class DefinitionRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the code of a worker says about a type: defaults for its tasks, and what they take.

    What the code does not say is left out. `parameters` is a JSON Schema of the parameters, null
    if there is none.
    """

    type: NameText
    queue: NameText | msgspec.UnsetType = msgspec.UNSET
    priority: PriorityName | Level | msgspec.UnsetType = msgspec.UNSET
    required_capabilities: Capabilities | msgspec.UnsetType = msgspec.UNSET
    max_retries: Retries | msgspec.UnsetType = msgspec.UNSET
    timeout_seconds: Timeout | msgspec.UnsetType | None = msgspec.UNSET
    retry_policy: RetryView | msgspec.UnsetType = msgspec.UNSET
    delay_seconds: Delay | msgspec.UnsetType = msgspec.UNSET
    unique: bool | UniqueRequest | msgspec.UnsetType = msgspec.UNSET
    tags: Tags | msgspec.UnsetType = msgspec.UNSET
    parameters: dict[str, Any] | None = None
    description: str = ""
    source: str = ""

    def definition(self) -> Definition:
        """Return the same for the core."""
        given = {name: getattr(self, name) for name in DefinitionRequest.__struct_fields__}
        if not isinstance(self.priority, msgspec.UnsetType):
            given["priority"] = level_of(self.priority)
        if isinstance(self.retry_policy, RetryView):
            given["retry_policy"] = self.retry_policy.policy()
        if isinstance(self.unique, UniqueRequest):
            given["unique"] = self.unique.unique()
        return Definition(**given)


class DefinitionView(DefinitionRequest, frozen=True, kw_only=True):
    """A definition as it was published. `version` counts its changes."""

    version: int
    published_at: Moment

    def published(self) -> Published:
        """Return the same for the core."""
        return Published(self.definition(), self.version, time_of(self.published_at))


class DefinitionList(msgspec.Struct, frozen=True):
    """Some of what workers have published about types. `next_cursor`: where to continue, null at
    the end."""

    definitions: tuple[DefinitionView, ...]
    next_cursor: str | None = None


class DefinitionQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The cursor of the page, and its size."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=limits.DEFINITION_PAGE)] = limits.DEFINITION_PAGE
    cursor: str | None = None


class Publication(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Definitions that a worker publishes."""

    definitions: Annotated[
        tuple[DefinitionRequest, ...],
        msgspec.Meta(extra_json_schema={"maxItems": limits.BATCH}),
    ]

    @property
    def names(self) -> str:
        """The types, for the audit log."""
        return " ".join(each.type for each in self.definitions)

    def options_of(self, types: Collection[str]) -> Publication:
        """Return what this says about tasks of these types, without what it says for readers."""
        return Publication(
            tuple(
                msgspec.structs.replace(each, parameters=None, description="", source="")
                for each in self.definitions
                if each.type in types
            )
        )


class PublicationReply(msgspec.Struct, frozen=True):
    """How many definitions were published. `changed`: the types for which that changed anything."""

    published: int
    changed: tuple[str, ...] = ()


def view_of(published: Published) -> DefinitionView:
    """Return a definition as JSON shows it."""
    return DefinitionView(
        **_values(published.definition),
        version=published.version,
        published_at=iso(published.published_at),
    )


def request_of(definition: Definition) -> DefinitionRequest:
    """Return a definition as a worker sends it."""
    return DefinitionRequest(**_values(definition))


def _values(definition: Definition) -> Mapping[str, Any]:
    values = {name: getattr(definition, name) for name in Definition.__struct_fields__}
    if not isinstance(definition.priority, msgspec.UnsetType):
        values["priority"] = shown_as(definition.priority)
    if not isinstance(definition.retry_policy, msgspec.UnsetType):
        values["retry_policy"] = RetryView.of(definition.retry_policy)
    if isinstance(definition.unique, Unique):
        unique = definition.unique
        values["unique"] = UniqueRequest(
            unique.arguments, unique.states, in_seconds(unique.period), unique.mode
        )
    return values
