"""Definitions of tasks: what the code of an application says about its types.

Workers publish them in the store, so that submitters without that code (the command line, the REST
API, other languages) get the same defaults and the same checks. What a submitter says explicitly
wins. A type that nobody has published is submitted with the defaults of its priority, unchecked.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Protocol

import msgspec

from fairlane.core import blobs, limits
from fairlane.core.documents import Document, Documents, Order, Place, Written, rewrites, write
from fairlane.core.errors import (
    BatchTooLarge,
    InvalidArguments,
    InvalidCursor,
    InvalidDefinition,
)
from fairlane.core.flow import Flow, Op, reads
from fairlane.core.json_schema import Misfit, misfit, unknown, without_required
from fairlane.core.model import moment
from fairlane.core.priority import MICROSECONDS
from fairlane.core.quotas import Made, give_back
from fairlane.core.retry import RetryPolicy
from fairlane.core.submission import Form, new_form, new_task
from fairlane.core.text import NAME_RULE, is_name, shown, storable
from fairlane.core.uniqueness import Unique
from fairlane.core.uniqueness import checked as checked_unique

Schema = dict[str, Any]


class Definition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the code says about a type. What it does not say is left out.

    The names are those of `new_task`. `parameters` is a JSON Schema of the payload, None if there
    is none; `description` is the handler's docstring, `source` the place of its code.
    """

    type: str
    queue: str | msgspec.UnsetType = msgspec.UNSET
    priority: int | msgspec.UnsetType = msgspec.UNSET
    required_capabilities: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    max_retries: int | msgspec.UnsetType = msgspec.UNSET
    timeout_seconds: float | msgspec.UnsetType | None = msgspec.UNSET
    retry_policy: RetryPolicy | msgspec.UnsetType = msgspec.UNSET
    delay_seconds: float | msgspec.UnsetType = msgspec.UNSET
    unique: bool | Unique | msgspec.UnsetType = msgspec.UNSET
    tags: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    parameters: Schema | None = None
    description: str = ""
    source: str = ""

    def defaults(self) -> dict[str, Any]:
        """Return what a submission of this type says unless it says something else: arguments of
        `new_task`."""
        given = ((name, getattr(self, name)) for name in OPTIONS)
        return {name: value for name, value in given if value is not msgspec.UNSET}


_ABOUT: Final = ("type", "parameters", "description", "source")
OPTIONS: Final = tuple(name for name in Definition.__struct_fields__ if name not in _ABOUT)
"""The fields that are options of a submission."""


class Published(msgspec.Struct, frozen=True):
    """A definition as the store has it. `version` counts its changes."""

    definition: Definition
    version: int
    published_at: datetime


class DefinitionPage(msgspec.Struct, frozen=True):
    """Some definitions. `next_cursor`: where to continue, None at the end."""

    definitions: list[Published]
    next_cursor: str | None


class DefinitionPages(Protocol):
    """A store whose definitions are read in pages."""

    def definition_page(
        self, cursor: str | None = None, limit: int = limits.DEFINITION_PAGE
    ) -> Op[DefinitionPage]: ...


class Template:
    """How tasks of a type are submitted: with the defaults of its definition, if it has one."""

    def __init__(self, type: str, definition: Definition | None = None) -> None:
        self._type = type
        self.definition = definition
        self._schema = None if definition is None else definition.parameters
        self._defaults = {} if definition is None else definition.defaults()
        self._forms: dict[tuple[object, object], Form | None] = {}

    def options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments of `new_task`: those that were given, and defaults for the others."""
        options = {**self._defaults, **given}
        if "run_at" in given and "delay_seconds" not in given:
            options.pop("delay_seconds", None)  # a task has one of them
        return options

    def form(self, queue: str | None, priority: str | int | None) -> Form | None:
        """Return what all submissions share that say no more than this; None if that depends on
        the payload."""
        key = (queue, priority)
        form = self._forms.get(key)
        if form is None and key not in self._forms:
            if len(self._forms) >= _FORMS:
                self._forms.clear()
            form = self._forms[key] = self._new_form(queue, priority)
        return form

    def _new_form(self, queue: str | None, priority: str | int | None) -> Form | None:
        given = {"queue": queue, "priority": priority}
        options = self.options({name: value for name, value in given.items() if value is not None})
        return None if options.get("unique") else new_form(self._type, **_without_unique(options))

    def check(self, payload: bytes, inputs: Collection[str] = ()) -> None:
        """Raise InvalidArguments if no handler of this type could take the payload, together with
        inputs of these names."""
        schema = self._schema
        if schema is None:
            return
        if inputs:
            self._check_names(schema, inputs)
            schema = without_required(schema, inputs)
        if payload.startswith(blobs.OPENING):
            return
        if len(payload) > limits.CHECKED_BYTES:
            return  # walking through it would take too long; the handler looks at all of it
        self._refuse(misfit(schema, msgspec.json.decode(payload)))

    def _check_names(self, schema: Schema, inputs: Collection[str]) -> None:
        for name in inputs:
            self._refuse(unknown(schema, name))

    def _refuse(self, found: Misfit | None) -> None:
        if found is not None:
            raise InvalidArguments(f"{self._type}: {found.text}.", parameter=found.parameter)


_FORMS: Final = 100


def _without_unique(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "unique"}


def checked_batch(definitions: Sequence[Definition]) -> None:
    """Raise BatchTooLarge if these are too many."""
    if len(definitions) > limits.BATCH:
        raise BatchTooLarge(f"At most {limits.BATCH} definitions are published at once.")


def checked(definition: Definition) -> Definition:
    """Return the definition as it is stored: texts are cut, and a schema that is too large is left
    out. Raises InvalidDefinition, or an InvalidTask if no task could be submitted with it."""
    if not is_name(definition.type):
        raise InvalidDefinition(f"A type has {NAME_RULE}. Got {shown(definition.type)}.")
    options = _without_unique(definition.defaults())
    new_task(definition.type, b"{}", **options)
    unique = definition.unique
    schema = definition.parameters
    if schema is not None and len(msgspec.json.encode(schema)) > limits.SCHEMA_BYTES:
        schema = None
    return msgspec.structs.replace(
        definition,
        unique=checked_unique(unique) if isinstance(unique, Unique) else unique,
        parameters=schema,
        description=storable(definition.description, limits.DESCRIPTION_CHARACTERS),
        source=storable(definition.source, limits.SOURCE_CHARACTERS),
    )


# As documents: the id is the type. They expire unless a worker publishes them from time to time.

_KIND: Final = "definition"
_LIFE: Final = int(limits.DEFINITION_SECONDS * MICROSECONDS)

_decoder: Final = msgspec.json.Decoder(Definition)
_encoder: Final = msgspec.json.Encoder()


def _published(stored: Document) -> Published:
    return Published(_decoder.decode(stored.value), stored.version, moment(stored.at))


# Operations, see `store`.


@reads
def definition(self: Documents, type: str) -> Flow[Published | None]:
    now, (stored,) = yield from self.read_documents(_KIND, [type])
    return None if stored is None or not stored.counts(now) else _published(stored)


def published_types(self: Documents, types: Sequence[str]) -> Flow[set[str]]:
    """Return those of up to 100 types that workers have published."""
    now, found = yield from self.read_documents(_KIND, types)
    return {each.id for each in found if each is not None and each.counts(now)}


def recent_types(self: Documents) -> Flow[list[str]]:
    """Return the types that workers have published last: those that one page holds."""
    newest = Order.NEWEST
    now, found = yield from self.list_documents(_KIND, newest, limits.DEFINITION_PAGE)
    return [each.id for each in found if each.counts(now)]


@reads
def definition_page(
    self: Documents, cursor: str | None = None, limit: int = limits.DEFINITION_PAGE
) -> Flow[DefinitionPage]:
    after = _place_of(cursor)
    now, found = yield from self.list_documents(_KIND, Order.OLDEST, limit, after)
    known = [_published(each) for each in found if each.counts(now)]
    ends = len(found) < limit
    return DefinitionPage(known, None if ends else f"{found[-1].at}:{found[-1].id}")


@reads
def definitions(self: DefinitionPages) -> Flow[list[Published]]:
    found: dict[str, Published] = {}  # one that is published meanwhile may come twice
    cursor = None
    while True:
        page = yield from self.definition_page(cursor).flow()
        found |= {each.definition.type: each for each in page.definitions}
        cursor = page.next_cursor
        if cursor is None:
            return [found[type] for type in sorted(found)]


def _place_of(cursor: str | None) -> Place | None:
    """Return where a page begins. Raises InvalidCursor."""
    if cursor is None:
        return None
    at, _, type = cursor.partition(":")
    if not re.fullmatch(r"[0-9]{1,18}", at, re.ASCII) or not is_name(type):
        raise InvalidCursor
    return int(at), type


@rewrites
def publish(self: Documents, definitions: Sequence[Definition]) -> Flow[list[str]]:
    checked_batch(definitions)
    new = {each.type: checked(each) for each in definitions}
    now, found = yield from self.read_documents(_KIND, list(new))
    puts = [
        put
        for each, stored in zip(new.values(), found, strict=True)
        if (put := _put(each, stored, now)) is not None
    ]
    if not puts:
        return []
    if (yield from write(self, _KIND, puts, most=limits.DEFINITIONS)) is Written.FULL:
        # Expired ones count until they are deleted.
        if not (yield from self.expire_documents(_KIND, limits.BATCH)):
            raise InvalidDefinition(
                f"At most {limits.DEFINITIONS:,} definitions are kept. One goes away "
                f"{limits.DEFINITION_SECONDS / 86_400:g} days after its last worker has started."
            )
        yield from write(self, _KIND, puts, most=limits.DEFINITIONS)
    # One that only lives longer keeps the time at which it was published.
    return [each.id for each in puts if each.at == now]


@rewrites
def drop_definition(self: Documents, type: str) -> Flow[bool]:
    now, (stored,) = yield from self.read_documents(_KIND, [type])
    if stored is None:
        return False
    yield from give_back(self, Made.DEFINITIONS, type)
    yield from write(self, _KIND, [], [stored])
    return stored.counts(now)


def _put(new: Definition, stored: Document | None, now: int) -> Document | None:
    """Return what to write; None if it is stored already, and does not expire soon."""
    # Not compared as bytes: the order of a set differs from process to process.
    if stored is None or _decoder.decode(stored.value) != new:
        version = 0 if stored is None else stored.version
        return Document(new.type, _encoder.encode(new), now, now + _LIFE, version=version)
    if stored.expires_at is not None and stored.expires_at < now + _LIFE // 2:
        return msgspec.structs.replace(stored, expires_at=now + _LIFE)
    return None
