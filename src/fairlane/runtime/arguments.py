"""A handler's arguments: checked against its type hints when they are submitted, and converted to
those types when the handler runs.

An argument can have any type that msgspec supports (dataclasses, datetimes, UUIDs, enums, decimals,
…), and be a pydantic model if pydantic is installed.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec

from fairlane.core.errors import (
    InvalidArguments,
    InvalidHandler,
    KeyMissing,
    SealBroken,
    UnknownCodec,
)
from fairlane.core.inputs import Input
from fairlane.core.merging import parted
from fairlane.core.sealing import check_open
from fairlane.runtime.codecs import RESERVED, Codec, NamedCodec, find, stored_with
from fairlane.runtime.context import Context
from fairlane.runtime.misfits import misfit
from fairlane.runtime.results import Refused, ResultParameter, unanswered, without_failed
from fairlane.runtime.schemas import parameters_schema
from fairlane.runtime.values import UNFIT, encoded, from_builtins


class Shared(msgspec.Struct, frozen=True):
    """Marks a parameter that a worker fills with something that a lifespan provides.

    async def report(day: str, db: Annotated[Pool, Shared("db")] = GIVEN) -> None: ...
    """

    name: str


GIVEN: Any = msgspec.UNSET
"""The default of a shared parameter, so that callers can leave it out."""


class Unreadable(InvalidArguments):
    """A stored payload does not fit its handler."""


class Locked(KeyMissing):
    """A stored payload is encrypted with a key that this process does not have."""


class Arguments:
    """Converts the arguments of one handler to a payload and back."""

    def __init__(
        self,
        handler: Callable[..., Any],
        codecs: Mapping[str, Codec] = MappingProxyType({}),
        codec: NamedCodec | None = None,
    ) -> None:
        self._codecs = codecs
        self._codec = codec
        self._name = getattr(handler, "__qualname__", repr(handler))
        signature, hints = _read(handler)
        self.returns: Any = hints.get("return", Any)
        """The handler's return type."""
        parameters = list(signature.parameters.values())
        self._hints = hints
        hints = {name: without_failed(hint) for name, hint in hints.items()}
        self.wants_context = bool(parameters) and hints.get(parameters[0].name) is Context
        if self.wants_context:
            del parameters[0]
        self.shared: dict[str, str] = {}
        """Names of what lifespans provide, by parameter."""
        self._optional: list[str] = []
        self._rest: str | None = None
        fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
        kept: list[inspect.Parameter] = []
        for parameter in parameters:
            hint = hints.get(parameter.name, Any)
            marker = _marker(hint)
            if marker is not None:
                self.shared[parameter.name] = marker.name
                continue
            self._check_parameter(parameter, hint)
            kept.append(parameter)
            if parameter.kind is parameter.VAR_KEYWORD:
                self._rest = parameter.name
            elif parameter.default is parameter.empty:
                fields.append((parameter.name, hint))
            else:
                # What is left out is not stored: the handler's default applies when it runs.
                self._optional.append(parameter.name)
                fields.append((parameter.name, hint | msgspec.UnsetType, msgspec.UNSET))
        self._signature = signature.replace(parameters=kept)
        self._bind = self._signature.bind
        self.names = frozenset(field[0] for field in fields)
        self.takes_any = self._rest is not None
        """Whether arguments may have other names, too."""
        self._required = self.names - set(self._optional)
        self._decoder = _decoder(self._name, fields, strict=self._rest is None)
        self._fields = fields
        self._results: dict[str, ResultParameter] = {}
        self.schema = None if codec is not None else parameters_schema(self._name, kept, hints)
        """A JSON Schema of the payload. None: only the codec knows what it looks like."""

    def _check_parameter(self, parameter: inspect.Parameter, hint: Any) -> None:
        if parameter.kind is parameter.VAR_POSITIONAL:
            raise InvalidHandler(
                f"{self._name} takes *{parameter.name}: arguments are stored by name, so give "
                "each parameter a name."
            )
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise InvalidHandler(
                f"{self._name} takes {parameter.name} by position only: arguments are stored by "
                "name, so remove the / from its parameters."
            )
        if hint is Context:
            raise InvalidHandler(
                f"{self._name} takes its Context as {parameter.name}: make that its first "
                "parameter."
            )

    @cached_property
    def _partial(self) -> Arguments:
        """The same for some of the arguments: none is required."""
        partial = copy.copy(self)
        fields = [
            (name, hint | msgspec.UnsetType, msgspec.UNSET) for name, hint, *_ in self._fields
        ]
        partial._decoder = _decoder(self._name, fields, strict=self._rest is None)
        partial._optional = list(self.names)
        partial._required = frozenset()
        partial._bind = self._signature.bind_partial
        return partial

    def encode(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], later: Collection[str] = ()
    ) -> bytes:
        """Return a call as a payload. Raises InvalidArguments if the handler does not accept it.

        `later`: parameters that are results of other tasks, and not among the arguments.
        """
        if later:
            self._check_later(self.some(args, kwargs), frozenset(later))
            return self._partial.encode(args, kwargs)
        if self._codec is not None:
            return self._encode_with(self._codec, self._named(args, kwargs))
        # With known names only, the slow `inspect` is not needed.
        if args or not self._required <= kwargs.keys() <= self.names:
            kwargs = self._named(args, kwargs)
        try:
            payload = encoded(kwargs)
            self._decoder.decode(payload)
        except UNFIT as error:
            raise InvalidArguments(f"{self._name}: {misfit(error)}.") from None
        return payload

    def _check_later(self, given: Mapping[str, Any], later: frozenset[str]) -> None:
        """Raise InvalidArguments unless a call is complete with these results."""
        unknown, twice = later - self.names, later & given.keys()
        missing = self._required - given.keys() - later
        if unknown and not self.takes_any:
            name = min(unknown)
            why = f"has no parameter {name!r}"
        elif twice:
            name = min(twice)
            why = f"is given {name!r}, which is the result of another task too"
        elif missing:
            name = min(missing)
            why = f"is missing a required argument: {name!r}"
        else:
            return
        raise InvalidArguments(f"{self._name} {why}.", parameter=name)

    def _encode_with(self, codec: NamedCodec, named: dict[str, Any]) -> bytes:
        try:
            return codec.encode(named)
        except Exception as error:
            raise InvalidArguments(
                f"{self._name}: the codec {codec.name} cannot encode the arguments: {error}."
            ) from error

    def _named(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments by name, as Python would bind them."""
        try:
            bound = self._bind(*args, **kwargs)
        except TypeError as error:
            raise InvalidArguments(f"{self._name}: {error}. It takes {self._taken()}.") from None
        named = dict(bound.arguments)
        if self._rest is not None:
            named |= named.pop(self._rest, {})
        return named

    def _taken(self) -> str:
        """Return the parameters as text: (name, copies=…)."""
        shown = [
            f"**{each.name}"
            if each.kind is each.VAR_KEYWORD
            else each.name + ("" if each.default is each.empty else "=…")
            for each in self._signature.parameters.values()
        ]
        return f"({', '.join(shown)})" if shown else "no arguments"

    def hint(self, name: str) -> Any:
        """Return the type of a parameter."""
        return self._hints.get(
            name, Any if self._rest is None else self._hints.get(self._rest, Any)
        )

    def some(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return some of the arguments of a call, by name. Raises InvalidArguments."""
        return self._partial._named(args, kwargs)

    def call(self, payload: bytes, inputs: Collection[str] = ()) -> dict[str, Any]:
        """Return a payload as the handler gets it: decoded, with the defaults of its parameters.

        `inputs`: parameters that are not in the payload, nor in what is returned.
        """
        given = (self._partial if inputs else self).decode(payload)
        parameters = self._signature.parameters.values()
        # In the order of the parameters. Those without a default are all given.
        defaults = {
            each.name: each.default
            for each in parameters
            if each.name in self.names and each.name not in inputs
        }
        return defaults | given

    def take(self, payload: bytes, inputs: Mapping[str, Input]) -> dict[str, Any]:
        """Return a payload that has its inputs as keyword arguments.

        Raises what `decode` raises, and Unanswered if a parameter that must be a result is none.
        """
        if RESERVED not in payload:  # nothing but results in plain JSON
            return self.decode(payload)
        try:
            rest, results = parted(payload, inputs)
        except UNFIT as error:
            raise Unreadable(f"The payload does not fit {self._name}: {misfit(error)}.") from None
        values = self._partial.decode(rest)
        for name, result in results.items():
            try:
                values[name] = self._result(name).value(result, inputs[name])
            except Refused as refused:
                if name not in self._optional:
                    raise unanswered(self._name, name, refused.failed) from None
            except UNFIT as error:
                raise Unreadable(
                    f"The result for the parameter {name} does not fit {self._name}: "
                    f"{misfit(error)}."
                ) from None
        missing = sorted(self._required - values.keys())
        if missing:
            raise Unreadable(f"The payload does not fit {self._name}: {missing[0]} is missing.")
        return values

    def _result(self, name: str) -> ResultParameter:
        found = self._results.get(name)
        if found is None:
            found = ResultParameter(self._hints.get(name, Any), self._codecs)
            self._results[name] = found
        return found

    def decode(self, payload: bytes) -> dict[str, Any]:
        """Return a payload as keyword arguments.

        Raises Unreadable if it does not fit the type hints, Locked if it is encrypted with a key
        that this process does not have.
        """
        try:
            # One look for all reserved forms: every payload passes here.
            if payload.startswith(RESERVED):
                check_open(payload)
                if (stored := stored_with(payload)) is not None:
                    return self._decode_with(stored.codec, stored.data)
            values: dict[str, Any] = msgspec.structs.asdict(self._decoder.decode(payload))
            if self._rest is not None:
                values = msgspec.json.decode(payload) | values
        except KeyMissing as error:
            raise Locked(error.message) from None
        except SealBroken as error:
            raise Unreadable(error.message) from None
        except Unreadable:
            raise
        except UNFIT as error:
            raise Unreadable(f"The payload does not fit {self._name}: {misfit(error)}.") from None
        for name in self._optional:
            if values[name] is msgspec.UNSET:
                del values[name]
        return values

    def _decode_with(self, name: str, data: Any) -> dict[str, Any]:
        try:
            codec = find(self._codecs, name).codec
        except UnknownCodec as error:
            raise Unreadable(f"The payload cannot be decoded. {error.message}") from None
        try:
            return self._named((), codec.decode(data))
        except Exception as error:
            raise Unreadable(
                f"The codec {name} cannot decode the payload for {self._name} "
                f"({type(error).__name__})."
            ) from error


def _read(handler: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, Any]]:
    if inspect.isgeneratorfunction(handler) or inspect.isasyncgenfunction(handler):
        raise InvalidHandler(f"{handler!r} is a generator: a task must return its result.")
    try:
        return inspect.signature(handler), get_type_hints(handler, include_extras=True)
    except (NameError, TypeError, ValueError, AttributeError) as error:
        raise InvalidHandler(
            f"The type hints of {handler!r} cannot be read: {error}. A task is a function, and "
            "its module imports all types that the hints name."
        ) from None


def _marker(hint: Any) -> Shared | None:
    if get_origin(hint) is not Annotated:
        return None
    return next((extra for extra in get_args(hint)[1:] if isinstance(extra, Shared)), None)


def _decoder(name: str, fields: Sequence[Any], *, strict: bool) -> msgspec.json.Decoder[Any]:
    try:
        struct = msgspec.defstruct(
            "Arguments", fields, kw_only=True, forbid_unknown_fields=strict, gc=False
        )
        return msgspec.json.Decoder(struct, dec_hook=from_builtins)
    except TypeError as error:
        raise InvalidHandler(
            f"The parameters of {name} cannot be decoded from JSON: {error}."
        ) from None
