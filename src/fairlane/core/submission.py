"""The door: a caller's words become a `NewTask`, or an error that says what to do instead.

Everything is checked here, once and completely, so that engines store what they are given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from hashlib import blake2b
from typing import Any, Final, TypeGuard

import msgspec

from fairlane.core import blobs, limits, retry, sealing
from fairlane.core.dependencies import OnParentFailure, checked_parents, checked_policy
from fairlane.core.durations import Seconds, in_seconds
from fairlane.core.errors import (
    InvalidCapabilities,
    InvalidIdempotencyKey,
    InvalidPayload,
    InvalidQueue,
    InvalidRetries,
    InvalidTags,
    InvalidTask,
    InvalidTime,
    InvalidTimeout,
    InvalidTrace,
    InvalidType,
    PayloadTooDeep,
    PayloadTooLarge,
    TaskIdConflict,
)
from fairlane.core.ids import checked as checked_id
from fairlane.core.ids import new_id
from fairlane.core.inputs import Input, TaskInput, checked_inputs, identified, named_inputs
from fairlane.core.membership import checked_membership
from fairlane.core.model import PLAIN, Membership, NewTask, Spec, microseconds_of, moment
from fairlane.core.priority import DEFAULT as DEFAULT_LEVEL
from fairlane.core.priority import Band, band_of, level_of
from fairlane.core.raw_json import NotJson, TooDeep, build, check_bounds, check_json, may_be_deep
from fairlane.core.retry import RetryPolicy
from fairlane.core.text import is_name, is_plain, shown
from fairlane.core.uniqueness import Unique, hold

DEFAULT_QUEUE: Final = "default"
DEFAULT_RETRIES: Final = {Band.CRITICAL: 5, Band.HIGH: 5, Band.MEDIUM: 3, Band.LOW: 2}
DEFAULT_TIMEOUT: Final = {
    Band.CRITICAL: 300.0,
    Band.HIGH: 300.0,
    Band.MEDIUM: 600.0,
    Band.LOW: 900.0,
}


_encoder: Final = msgspec.json.Encoder()
_RESERVED: Final = b'{"$'
"""How payloads begin that Fairlane itself makes: by reference, or sealed."""


class Unset(msgspec.Struct, frozen=True):
    """Stands for "not given" where None already means something."""


UNSET: Final = Unset()


def new_task(
    type: str,
    payload: Mapping[str, Any] | bytes | None = None,
    *,
    queue: str = DEFAULT_QUEUE,
    priority: str | int = DEFAULT_LEVEL,
    required_capabilities: Iterable[str] = (),
    max_retries: int | None = None,
    timeout_seconds: Seconds | Unset | None = UNSET,
    delay_seconds: Seconds = 0.0,
    run_at: datetime | None = None,
    expires_at: datetime | None = None,
    idempotency_key: str | None = None,
    tags: Mapping[str, str] | None = None,
    trace_id: str | None = None,
    traceparent: str | None = None,
    retry_policy: RetryPolicy | None = None,
    depends_on: Iterable[str] = (),
    on_parent_failure: str = OnParentFailure.CANCEL,
    inputs: Mapping[str, Input] | None = None,
    unique: Unique | bool | None = None,
    task_id: str | None = None,
    workflow_id: str | None = None,
    membership: Membership | None = None,
    payload_bytes: int = limits.PAYLOAD_BYTES,
) -> NewTask:
    """Return a submission with everything checked and every default resolved.

    `payload` may be bytes of JSON: they are stored as they are. `payload_bytes` is how large it
    may be. `inputs` are parameters that are not in the payload: see `inputs`. `workflow_id` and
    `membership` make it a task of a workflow: see `workflows`.
    """
    level = level_of(priority)
    band = band_of(level)
    encoded = checked_payload({} if payload is None else payload, payload_bytes)
    type = _checked_name(type, InvalidType)
    parents = checked_parents(depends_on)
    sources = checked_inputs(inputs, parents, encoded)
    identity = identified(encoded, sources, parents) if sources else encoded
    if delay_seconds and run_at is not None:
        raise InvalidTime("Give either delay_seconds or run_at, not both.")
    return NewTask(
        task_id=new_id() if task_id is None else checked_id(task_id),
        type=type,
        queue=_checked_name(queue, InvalidQueue),
        capabilities=_checked_capabilities(required_capabilities),
        level=level,
        payload=encoded,
        max_retries=DEFAULT_RETRIES[band] if max_retries is None else _checked_retries(max_retries),
        timeout=(
            DEFAULT_TIMEOUT[band]
            if isinstance(timeout_seconds, Unset)
            else _checked_timeout(in_seconds(timeout_seconds))
        ),
        delay=_checked_delay(in_seconds(delay_seconds)),
        run_at=_checked_time("run_at", run_at),
        expires_at=_checked_time("expires_at", expires_at),
        idempotency_key=checked_key(idempotency_key),
        fingerprint=None if idempotency_key is None else fingerprint(type, identity),
        spec=_spec(
            tags,
            trace_id,
            traceparent,
            retry_policy,
            parents,
            on_parent_failure,
            sources,
            workflow_id,
            checked_membership(workflow_id, membership, task_id),
            timed=not isinstance(timeout_seconds, Unset),
            dated=run_at is not None,
        ),
        unique=hold(type, identity, unique),
        chosen=task_id is not None,
    )


class Form(msgspec.Struct, frozen=True):
    """A submission of which everything is said but its payload: checked once, filled in again and
    again."""

    model: NewTask

    def filled(self, payload: bytes, most: int = limits.PAYLOAD_BYTES) -> NewTask:
        """Return the submission with a payload that `checked_payload`, or an encoder, made."""
        if len(payload) > most:
            raise _too_large(len(payload), most)
        if payload.startswith(_RESERVED):
            sealing.check_reserved(payload)
        model = self.model
        return NewTask(
            new_id(),
            model.type,
            model.queue,
            model.capabilities,
            model.level,
            payload,
            model.max_retries,
            model.timeout,
            model.delay,
            model.run_at,
            model.expires_at,
            None,
            None,
            model.spec,
        )


PAYLOAD_OPTIONS: Final = frozenset({"idempotency_key", "unique", "task_id", "inputs"})
"""What cannot be in a form: it goes with one payload."""


def new_form(type: str, **options: Any) -> Form:
    """Return a form with everything checked. Takes what `new_task` takes, but for
    `PAYLOAD_OPTIONS`."""
    assert not PAYLOAD_OPTIONS & options.keys()
    return Form(new_task(type, b"{}", **options))


def checked_payload(payload: Mapping[str, Any] | bytes, most: int) -> bytes:
    """Return a payload as bytes of JSON that every engine and every handler can read."""
    if isinstance(payload, bytes):
        return _checked_bytes(payload, most, check_json)
    if not isinstance(payload, Mapping):
        raise InvalidPayload(
            f"A payload is a JSON object (a dict), not {_kind(payload)}: "
            'wrap it, for example {"value": …}.'
        )
    if not all(isinstance(name, str) for name in payload):
        raise InvalidPayload(f"{InvalidPayload.__doc__} Its names are not all text.")
    try:
        encoded = _encoder.encode(payload)
        decoded = msgspec.json.decode(encoded)
    except RecursionError:
        raise _too_deep() from None
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidPayload(f"{InvalidPayload.__doc__} {error}.") from None
    if len(encoded) > most:
        raise _too_large(len(encoded), most)
    if b"null" in encoded:
        # The encoder writes NaN and the infinities as null: only what it was given can tell.
        check_tree(msgspec.to_builtins(payload), limits.JSON_DEPTH)
    elif may_be_deep(encoded):
        check_tree(decoded, limits.JSON_DEPTH)
    sealing.check_reserved(encoded)
    return encoded


def checked_json(payload: bytes, most: int) -> bytes:
    """Return a payload, checked as by `checked_payload`, that is known to be JSON in UTF-8: part of
    a text that was decoded."""
    return _checked_bytes(payload, most, check_bounds)


def _checked_bytes(payload: bytes, most: int, check: Callable[[bytes], None]) -> bytes:
    if len(payload) > most:
        raise _too_large(len(payload), most)
    try:
        check(payload)
    except TooDeep:
        raise _too_deep() from None
    except NotJson as error:
        raise InvalidPayload(f"The payload is not valid JSON: {error}.") from None
    if not payload.startswith(b"{") and not payload.lstrip().startswith(b"{"):
        raise InvalidPayload(f"A payload is a JSON object, not {_kind(build(payload))}.")
    if payload.startswith(_RESERVED):
        found = blobs.parsed(payload)
        if found is not None and found.kind == blobs.IN_STORE:
            raise blobs.reserved()  # only the client makes these, from a payload checked before
        sealing.check_reserved(payload)
    return payload


def fingerprint(type: str, payload: bytes) -> bytes:
    """Return what two submissions under one idempotency key must share: type and payload, which
    stands for the inputs too (see `identified`).

    The order of keys and white space make no difference.
    """
    return blake2b(type.encode() + b"\0" + _canonical(payload), digest_size=16).digest()


def _canonical(payload: bytes) -> bytes:
    return msgspec.json.encode(build(payload), order="sorted")


def same_payload(one: bytes, other: bytes) -> bool:
    """Return whether two payloads say the same, as for `fingerprint`."""
    return one == other or _canonical(one) == _canonical(other)


def check_repeated(
    task: NewTask, type: str, payload: bytes, inputs: Mapping[str, TaskInput]
) -> None:
    """Raise TaskIdConflict unless the stored task that has the id of this one is the same.

    A client repeats a submission whose answer it did not get. It then sends the same type, payload
    and inputs.
    """
    matches = partial(same_payload, task.payload) if task.matches is None else task.matches
    if (
        task.type != type
        or named_inputs(task.spec.inputs, task.depends_on) != inputs
        or not matches(payload)
    ):
        raise TaskIdConflict


def inputs_of(spec: bytes | None) -> dict[str, TaskInput]:
    """Return the inputs of a stored task, with the ids of its parents."""
    found = Spec.decode(spec)
    return named_inputs(found.inputs, found.depends_on)


def check_tree(value: object, depth: int) -> None:
    """Raise InvalidPayload if a value holds a number that JSON has not, or is nested deeper."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidPayload(
                f"JSON has no {value}: send None or text instead of a number that is not finite."
            )
    elif isinstance(value, Mapping | list | tuple | set | frozenset):
        if depth == 0:
            raise _too_deep()
        for item in value.values() if isinstance(value, Mapping) else value:
            check_tree(item, depth - 1)


def _too_deep() -> PayloadTooDeep:
    return PayloadTooDeep(
        f"The payload is nested more than {limits.JSON_DEPTH} levels deep: flatten it."
    )


def _too_large(size: int, most: int) -> PayloadTooLarge:
    return PayloadTooLarge(
        f"The payload has {size:,} bytes of JSON, at most {most:,} are accepted: "
        "store the data elsewhere and pass a reference to it."
        + (_BY_REFERENCE if most < limits.BLOB_BYTES else "")
    )


_BY_REFERENCE: Final = (
    f" Python clients do that for up to {limits.BLOB_BYTES:,} bytes with the setting blobs."
)


def _checked_name(name: object, error: type[InvalidTask]) -> str:
    if is_name(name):
        return name
    raise error(f"{error.__doc__} Got {shown(name)}.")


def _checked_capabilities(capabilities: object) -> tuple[str, ...]:
    if capabilities == ():
        return ()
    if isinstance(capabilities, str) or not isinstance(capabilities, Iterable):
        raise InvalidCapabilities(
            f'Capabilities are a set of names, for example {{"gpu"}}, not {_kind(capabilities)}.'
        )
    found = tuple(capabilities)
    if len(found) > limits.CAPABILITIES:
        raise InvalidCapabilities(
            f"A task may require at most {limits.CAPABILITIES} capabilities, not {len(found):,}."
        )
    return tuple(sorted({_checked_name(name, _InvalidCapability) for name in found}))


class _InvalidCapability(InvalidCapabilities):
    """A capability has 1 to 255 characters out of A-Z a-z 0-9 _ . : - only."""


def _checked_retries(retries: object) -> int:
    if (
        isinstance(retries, int)
        and not isinstance(retries, bool)
        and 0 <= retries <= limits.RETRIES
    ):
        return retries
    raise InvalidRetries(
        f"max_retries is a whole number from 0 to {limits.RETRIES:,}. Got {shown(retries)}."
    )


def _checked_timeout(timeout: object) -> float | None:
    if timeout is None:
        return None
    if _is_number(timeout) and 0 < timeout <= limits.TIMEOUT_SECONDS:
        return float(timeout)
    raise InvalidTimeout(
        "timeout_seconds is a number above 0 and at most "
        f"{limits.TIMEOUT_SECONDS:,.0f}, or None for no timeout. Got {shown(timeout)}."
    )


def _checked_delay(delay: object) -> float:
    if _is_number(delay) and 0 <= delay <= limits.DELAY_SECONDS:
        return float(delay)
    raise InvalidTime(
        f"delay_seconds is a number from 0 to {limits.DELAY_SECONDS:,.0f}. Got {shown(delay)}."
    )


def _checked_time(field: str, time: object) -> int | None:
    if time is None:
        return None
    if not isinstance(time, datetime):
        raise InvalidTime(f"{field} is a datetime with a time zone, not {_kind(time)}.")
    if time.utcoffset() is None:
        raise InvalidTime(
            f"{field} has no time zone, so it could mean any of 24 hours: "
            "use datetime.now(timezone.utc) or add tzinfo=…."
        )
    microseconds = microseconds_of(time)
    try:
        moment(microseconds)
    except OverflowError:
        raise InvalidTime(f"{field} lies outside the years 1 to 9999 in UTC.") from None
    return microseconds


def checked_key(key: object) -> str | None:
    if key is None:
        return None
    if is_plain(key) and key:
        return key
    raise InvalidIdempotencyKey(f"{InvalidIdempotencyKey.__doc__} Got {shown(key)}.")


def checked_tags(tags: object) -> dict[str, str]:
    """Return tags that a task may have."""
    if not isinstance(tags, Mapping) or len(tags) > limits.TAGS:
        raise InvalidTags(f"Tags are a dict with at most {limits.TAGS} entries.")
    for name, value in tags.items():
        for text in (name, value):
            if not is_plain(text, limits.TAG_LENGTH):
                raise InvalidTags(
                    f"Tag names and values are texts of at most {limits.TAG_LENGTH} characters "
                    f"without control characters. Got {shown(text)}."
                )
    return dict(tags)


def _checked_trace(text: object) -> str | None:
    if text is None or (
        isinstance(text, str)
        and 1 <= len(text) <= limits.TRACE_LENGTH
        and text.isascii()
        and text.isprintable()
    ):
        return text
    raise InvalidTrace(f"{InvalidTrace.__doc__} Got {shown(text)}.")


def _spec(
    tags: Mapping[str, str] | None,
    trace_id: str | None,
    traceparent: str | None,
    policy: RetryPolicy | None,
    depends_on: tuple[str, ...],
    on_parent_failure: str,
    inputs: dict[str, Input],
    workflow_id: str | None,
    membership: Membership | None,
    *,
    timed: bool,
    dated: bool,
) -> Spec:
    tolerant = checked_policy(on_parent_failure) is OnParentFailure.CONTINUE
    special = (tags, trace_id, traceparent, policy, membership, depends_on)
    if special == _NOTHING_SPECIAL and not tolerant and not inputs:
        return _USUAL[timed, dated]
    return Spec(
        retry=retry.DEFAULT if policy is None else retry.checked(policy),
        tags={} if tags is None else checked_tags(tags),
        trace_id=_checked_trace(trace_id),
        traceparent=_checked_trace(traceparent),
        depends_on=depends_on,
        tolerant=tolerant,
        inputs=inputs,
        workflow_id=workflow_id,
        membership=membership,
        timed=timed,
        dated=dated,
    )


_USUAL = {
    (False, False): PLAIN,
    (True, False): Spec(timed=True),
    (False, True): Spec(dated=True),
    (True, True): Spec(timed=True, dated=True),
}
_NOTHING_SPECIAL = (None, None, None, None, None, ())


def _is_number(value: object) -> TypeGuard[float]:
    # Compared with bounds by every caller, which NaN and the infinities fail.
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kind(value: object) -> str:
    return "null" if value is None else f"a value of type {type_name(value)}"


def type_name(value: object) -> str:
    """Return the name of a value's type, for messages."""
    return value.__class__.__name__
