"""The door: what is accepted and how it is resolved, what is refused and in which words."""

import json
import math
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, date, datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.core import limits
from fairlane.core.errors import (
    InvalidCapabilities,
    InvalidDependencies,
    InvalidIdempotencyKey,
    InvalidInput,
    InvalidPayload,
    InvalidPriority,
    InvalidQueue,
    InvalidRetries,
    InvalidTags,
    InvalidTask,
    InvalidTaskId,
    InvalidTime,
    InvalidTimeout,
    InvalidTrace,
    InvalidType,
    InvalidUnique,
    PayloadTooDeep,
    PayloadTooLarge,
    TaskIdConflict,
)
from fairlane.core.ids import checked as checked_id
from fairlane.core.ids import new_id
from fairlane.core.inputs import Input, TaskInput
from fairlane.core.model import PLAIN, NewTask, Spec, moment
from fairlane.core.retry import RetryPolicy
from fairlane.core.submission import (
    UNSET,
    check_repeated,
    fingerprint,
    inputs_of,
    new_form,
    new_task,
)
from fairlane.core.uniqueness import Mode, Unique, hold
from tests.unit.make import NOON, TASK_ID, quick, task_id, texts

NAN = float("nan")
INF = float("inf")
LONE = "\ud800"  # half of a surrogate pair: no Unicode, and no UTF-8 form


def submitted(**fields: Any) -> NewTask:
    """A submission that is in order but for `fields`."""
    return new_task(**{"type": "email", **fields})


def refusal(kind: type[InvalidInput], code: str, **fields: Any) -> str:
    """The words in which a submission is refused."""
    with pytest.raises(InvalidInput) as caught:
        submitted(**fields)
    assert isinstance(caught.value, kind)
    assert isinstance(caught.value, ValueError)
    assert caught.value.code == code
    message = caught.value.message
    assert str(caught.value) == message
    assert message[0].isupper() or message.split()[0] in fields, "a sentence, or a field's name"
    assert message.endswith((".", "…."))
    assert len(message) < 400
    assert message.isprintable()
    return message


def nested(depth: int) -> dict[str, Any]:
    """A dict with so many levels of dicts, itself included."""
    found: dict[str, Any] = {}
    for _ in range(depth - 1):
        found = {"a": found}
    return found


def nested_lists(depth: int) -> dict[str, Any]:
    """A dict in which lists are nested, with so many levels in all."""
    found: list[Any] = []
    for _ in range(depth - 2):
        found = [found]
    return {"a": found}


def nested_bytes(depth: int) -> bytes:
    return b'{"a":' * (depth - 1) + b"{}" + b"}" * (depth - 1)


class TestDefaults:
    def test_a_type_is_enough(self) -> None:
        task = new_task("email")
        assert task == NewTask(
            task_id=task.task_id,
            type="email",
            queue="default",
            capabilities=(),
            level=5,
            payload=b"{}",
            max_retries=3,
            timeout=600.0,
        )
        assert checked_id(task.task_id)
        assert (task.delay, task.run_at, task.expires_at) == (0.0, None, None)
        assert task.spec is PLAIN

    @pytest.mark.parametrize(
        ("priority", "max_retries", "timeout"),
        [
            ("critical", 5, 300.0),
            ("high", 5, 300.0),
            ("medium", 3, 600.0),
            ("normal", 3, 600.0),
            ("low", 2, 900.0),
            (10, 5, 300.0),
            (9, 5, 300.0),
            (8, 5, 300.0),
            (7, 3, 600.0),
            (5, 3, 600.0),
            (4, 2, 900.0),
            (0, 2, 900.0),
        ],
    )
    def test_retries_and_time_limit_follow_the_band_of_the_priority(
        self, priority: str | int, max_retries: int, timeout: float
    ) -> None:
        task = submitted(priority=priority)
        assert (task.max_retries, task.timeout) == (max_retries, timeout)

    def test_what_is_given_wins_over_the_band(self) -> None:
        task = submitted(priority="critical", max_retries=0, timeout_seconds=1)
        assert (task.max_retries, task.timeout) == (0, 1.0)

    def test_no_timeout_is_not_the_same_as_none_given(self) -> None:
        assert submitted(timeout_seconds=None).timeout is None
        assert submitted(timeout_seconds=None).spec.timed
        assert submitted(timeout_seconds=600, tags={"a": "b"}).spec.timed
        assert not submitted(tags={"a": "b"}).spec.timed
        assert submitted().spec is PLAIN
        assert submitted(timeout_seconds=UNSET).timeout == 600.0

    def test_every_submission_gets_an_id_of_its_own(self) -> None:
        assert submitted().task_id < submitted().task_id


class TestAccepted:
    @pytest.mark.parametrize("name", ["a", "A.b_c:d-9", "x" * 255])
    def test_names(self, name: str) -> None:
        task = submitted(type=name, queue=name, required_capabilities=[name])
        assert (task.type, task.queue, task.capabilities) == (name, name, (name,))

    @pytest.mark.parametrize(
        "capabilities",
        [["ssd", "gpu"], {"gpu", "ssd"}, frozenset({"gpu", "ssd"}), ("ssd", "gpu", "gpu")],
    )
    def test_capabilities_are_a_set_in_whatever_form_they_come(self, capabilities: Any) -> None:
        assert submitted(required_capabilities=capabilities).capabilities == ("gpu", "ssd")

    def test_capabilities_may_come_from_a_generator(self) -> None:
        task = submitted(required_capabilities=(name for name in ("b", "a")))
        assert task.capabilities == ("a", "b")

    @pytest.mark.parametrize("none", [[], set(), (), {}])
    def test_no_capabilities(self, none: Any) -> None:
        assert submitted(required_capabilities=none).capabilities == ()

    def test_as_many_capabilities_as_allowed(self) -> None:
        names = {f"c{n}" for n in range(64)}
        assert set(submitted(required_capabilities=names).capabilities) == names

    @pytest.mark.parametrize("retries", [0, 1, 1000])
    def test_retries(self, retries: int) -> None:
        assert submitted(max_retries=retries).max_retries == retries

    @pytest.mark.parametrize("timeout", [0.001, 1, 30 * 86_400])
    def test_timeouts(self, timeout: float) -> None:
        assert submitted(timeout_seconds=timeout).timeout == timeout

    def test_timedeltas(self) -> None:
        task = new_task("t", timeout_seconds=timedelta(minutes=2), delay_seconds=timedelta(hours=1))
        assert (task.timeout, task.delay) == (120.0, 3600.0)

    @pytest.mark.parametrize("delay", [0, 0.0, 0.5, 10 * 366 * 86_400])
    def test_delays(self, delay: float) -> None:
        assert submitted(delay_seconds=delay).delay == delay

    @pytest.mark.parametrize("field", ["run_at", "expires_at"])
    @pytest.mark.parametrize("hours", [0, 2, -5])
    def test_times_of_every_zone(self, field: str, hours: int) -> None:
        time = NOON.astimezone(timezone(timedelta(hours=hours)))
        task = submitted(**{field: time})
        assert moment(getattr(task, field)) == NOON

    def test_a_time_with_no_delay(self) -> None:
        assert submitted(run_at=NOON, delay_seconds=0).run_at is not None

    @pytest.mark.parametrize(
        "key", ["k", "x" * 255, "\N{ROCKET}", "\N{ROCKET}" * 255, "two words", "größe/#1"]
    )
    def test_idempotency_keys(self, key: str) -> None:
        task = submitted(idempotency_key=key)
        assert task.idempotency_key == key
        assert task.fingerprint == fingerprint("email", b"{}")

    def test_without_a_key_there_is_no_fingerprint(self) -> None:
        assert submitted().fingerprint is None

    def test_what_no_engine_computes_with_goes_into_the_spec(self) -> None:
        policy = RetryPolicy(base=5.0)
        task = submitted(
            tags={"tenant": "größe \N{ROCKET}", "x" * 255: "y" * 255},
            trace_id="0af7651916cd43dd8448eb211c80319c",
            traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            retry_policy=policy,
        )
        assert task.spec == Spec(
            retry=policy,
            tags={"tenant": "größe \N{ROCKET}", "x" * 255: "y" * 255},
            trace_id="0af7651916cd43dd8448eb211c80319c",
            traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        )

    @pytest.mark.parametrize(
        ("fields", "spec"),
        [
            ({"tags": {}}, PLAIN),
            ({"tags": MappingProxyType({"a": "b"})}, Spec(tags={"a": "b"})),
            (
                {"tags": {f"t{n}": "" for n in range(64)}},
                Spec(tags={f"t{n}": "" for n in range(64)}),
            ),
            ({"trace_id": "t" * 512}, Spec(trace_id="t" * 512)),
            ({"traceparent": "p"}, Spec(traceparent="p")),
            ({"retry_policy": RetryPolicy()}, PLAIN),
            ({"depends_on": []}, PLAIN),
            ({"depends_on": None}, PLAIN),
            ({"depends_on": [TASK_ID]}, Spec(depends_on=(TASK_ID,))),
            (
                {"depends_on": [task_id(2), task_id(1), task_id(2)]},
                Spec(depends_on=(task_id(2), task_id(1))),
            ),
            ({"on_parent_failure": "cancel"}, PLAIN),
            ({"on_parent_failure": "continue"}, Spec(tolerant=True)),
            (
                {"depends_on": [TASK_ID], "on_parent_failure": "continue"},
                Spec(depends_on=(TASK_ID,), tolerant=True),
            ),
        ],
    )
    def test_each_part_of_the_spec_alone(self, fields: dict[str, Any], spec: Spec) -> None:
        assert submitted(**fields).spec == spec

    def test_tags_are_the_tasks_own(self) -> None:
        tags = {"a": "b"}
        task = submitted(tags=tags)
        tags["a"] = "changed"
        assert task.spec.tags == {"a": "b"}

    def test_what_it_depends_on_is_read_off_the_task_as_well(self) -> None:
        assert submitted(depends_on=iter([TASK_ID])).depends_on == (TASK_ID,)
        assert submitted().depends_on == ()

    @pytest.mark.parametrize("plain", [None, False])
    def test_a_task_need_not_be_unique(self, plain: bool | None) -> None:
        assert submitted(unique=plain).unique is None

    def test_a_unique_task_holds_a_key_made_of_its_type_and_payload(self) -> None:
        how = Unique(arguments=("to",), period=60, mode=Mode.REJECT)
        task = submitted(payload={"to": "a", "text": "b"}, unique=how)
        assert task.unique == hold("email", b'{"text":"b","to":"a"}', how)
        assert task.unique is not None
        other = submitted(type="sms", payload={"to": "a", "text": "b"}, unique=how)
        assert other.unique is not None
        assert other.unique.key != task.unique.key

    def test_an_id_of_the_callers(self) -> None:
        assert submitted(task_id=TASK_ID).task_id == TASK_ID


class TestPayloadsAccepted:
    @pytest.mark.parametrize(
        "payload",
        [
            {},
            {"a": None},
            {"a": [1, "null", {"b": None}], "c": False},
            {"größe": "\N{ROCKET}\x00\n"},
            {"": ""},
            {"a": 1.5, "b": -0.0, "c": 5e-324, "d": 1.7976931348623157e308},
            OrderedDict(b=1, a=2),
        ],
        ids=repr,
    )
    def test_what_json_can_say_arrives_as_it_was(self, payload: dict[str, Any]) -> None:
        assert json.loads(submitted(payload=payload).payload) == payload

    @pytest.mark.parametrize(
        "number",
        [2**53 + 1, 2**63, 2**64, -(2**64), 10**40, 0.1 + 0.2, 1e22, 1 / 3, 123456789.123456789],
    )
    def test_big_numbers_and_fractions_are_kept_exactly(self, number: float) -> None:
        payload = submitted(payload={"n": number}).payload
        assert json.loads(payload) == {"n": number}
        decoded = msgspec.json.decode(payload)
        assert decoded == {"n": number}
        assert type(decoded["n"]) is type(number)

    @pytest.mark.parametrize(
        "payload",
        [
            b"{}",
            b' { "b" : 1.0 , "a" : [ ] } ',
            b'{"n":12345678901234567890123456789.000000000000000000001}',
            b'{"n":10000000000000000000000000000000000000001}',
            rb'{"a":"\ud83d\ude80\u0000"}',
            b'{"a":null}',
        ],
    )
    def test_bytes_are_stored_as_they_are(self, payload: bytes) -> None:
        assert submitted(payload=payload).payload is payload

    @pytest.mark.parametrize("payload", [nested(100), nested_lists(100), nested_bytes(100)])
    def test_a_hundred_levels(self, payload: Any) -> None:
        submitted(payload=payload)

    @pytest.mark.parametrize("sibling", [[], {}])
    def test_a_hundred_levels_next_to_others(self, sibling: Any) -> None:
        payload = nested(100) | {"b": sibling}
        assert json.loads(submitted(payload=payload).payload) == payload
        submitted(payload=json.dumps(payload).encode())

    def test_many_brackets_do_not_make_it_deep(self) -> None:
        wide = {"a": [[] for _ in range(500)], "b": "{" * 500}
        assert json.loads(submitted(payload=wide).payload) == wide
        submitted(payload=json.dumps(wide).encode())

    def test_exactly_as_large_as_allowed(self) -> None:
        payload = {"a": "x" * (256 * 1024 - len('{"a":""}'))}
        assert len(submitted(payload=payload).payload) == 256 * 1024
        submitted(payload=json.dumps(payload, separators=(",", ":")).encode())

    def test_the_size_allowed_is_a_setting(self) -> None:
        assert submitted(payload={"a": 1}, payload_bytes=7).payload == b'{"a":1}'
        refusal(PayloadTooLarge, "payload_too_large", payload={"a": 12}, payload_bytes=7)
        refusal(PayloadTooLarge, "payload_too_large", payload=b'{"a":12}', payload_bytes=7)

    @quick
    @given(
        st.dictionaries(
            texts,
            st.recursive(
                st.none()
                | st.booleans()
                | st.integers()
                | st.floats(allow_nan=False, allow_infinity=False)
                | texts,
                lambda inner: (
                    st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
                ),
                max_leaves=5,
            ),
            max_size=3,
        )
    )
    def test_any_json_object_survives_the_door(self, payload: dict[str, Any]) -> None:
        stored = submitted(payload=payload).payload
        assert json.loads(stored) == payload
        assert submitted(payload=stored).payload is stored


class TestPayloadsRefused:
    @pytest.mark.parametrize(
        "payload", [[1], [], "text", 5, 1.5, True, (1,), {1}, bytearray(b"{}"), object()]
    )
    def test_what_is_no_object(self, payload: Any) -> None:
        message = refusal(InvalidPayload, "invalid_payload", payload=payload)
        assert "is a JSON object (a dict), not a value of type" in message
        assert 'wrap it, for example {"value": …}' in message

    @pytest.mark.parametrize(
        ("payload", "kind"),
        [
            (b"null", "null"),
            (b"[]", "a value of type list"),
            (b'[{"a":1}]', "a value of type list"),
            (b'"text"', "a value of type str"),
            (b"5", "a value of type int"),
            (b"true", "a value of type bool"),
        ],
    )
    def test_bytes_of_what_is_no_object(self, payload: bytes, kind: str) -> None:
        message = refusal(InvalidPayload, "invalid_payload", payload=payload)
        assert message == f"A payload is a JSON object, not {kind}."

    @pytest.mark.parametrize("number", [NAN, INF, -INF])
    @pytest.mark.parametrize(
        "where",
        [
            lambda number: {"a": number},
            lambda number: {"a": None, "b": [1.5, {"c": number}]},
            lambda number: {"a": (number,)},
            lambda number: {"a": {number}},
            lambda number: {"a": frozenset({number})},
            lambda number: {"a": OrderedDict(b=number)},
        ],
        ids=["value", "nested", "tuple", "set", "frozenset", "mapping"],
    )
    def test_numbers_that_are_not_finite(self, where: Any, number: float) -> None:
        message = refusal(InvalidPayload, "invalid_payload", payload=where(number))
        assert message.startswith(f"JSON has no {number}: send None or text instead")

    @pytest.mark.parametrize(
        "payload",
        [
            b"",
            b" ",
            b'{"a":',
            b'{"a":1',
            b'{"a":"',
            b"{} {}",
            b"{}{}",
            b"{},",
            b"{'a':1}",
            b'{"a":1,}',
            b"{a:1}",
            b'{"a":NaN}',
            b'{"a":Infinity}',
            b'{"a":-Infinity}',
            b'{"a":1e400}',
            b'{"a":-1e400}',
            b'{"a":01}',
            b'{"a":\xff}',
            b'{"a":"\xff"}',
            b'{"\xff":1}',
            b'{"a":"\xed\xa0\x80"}',
            b'{"a":"\x00"}',
            b'\xef\xbb\xbf{"a":1}',
            '{"a":1}'.encode("utf-16"),
            rb'{"a":"\ud800"}',
            rb'{"a":"\ud800 "}',
            rb'{"a":"\ud800\u0041"}',
            rb'{"a":"\udc00"}',
            rb'{"\ud800":1}',
            b"\x80\x04}\x94.",
        ],
    )
    def test_bytes_that_are_no_json(self, payload: bytes) -> None:
        message = refusal(InvalidPayload, "invalid_payload", payload=payload)
        assert message.startswith("The payload is not valid JSON: ")

    @pytest.mark.parametrize(
        "payload",
        [
            {"a": LONE},
            {LONE: 1},
            {"a": ["x" * 50, {"b": "half \udfff"}]},
            {None: 1},
            {("a", "b"): 1},
            {"a": object()},
            {"a": 1j},
            {"a": {"b": lambda: None}},
            {"a": 10**5000},
            MappingProxyType({"a": 1}),
        ],
        ids=[
            "lone surrogate in a value",
            "lone surrogate in a key",
            "lone surrogate further in",
            "None as a key",
            "tuple as a key",
            "object",
            "complex number",
            "function",
            "integer beyond what Python writes",
            "mapping of a kind that has no JSON form",
        ],
    )
    def test_dicts_that_have_no_json_form(self, payload: Any) -> None:
        message = refusal(InvalidPayload, "invalid_payload", payload=payload)
        assert message.startswith(
            "A payload is a JSON object: a dict with text keys, finite numbers and valid Unicode. "
        )

    @pytest.mark.parametrize(
        "payload",
        [
            nested(101),
            nested(1000),
            nested(5000),
            nested_lists(101),
            nested_lists(1000),
            nested_bytes(101),
            nested_bytes(1000),
            nested_bytes(40_000),
            b'{"a":' + b"[" * 100 + b"]" * 100 + b"}",
        ],
        ids=[
            "101 dicts",
            "1,000 dicts",
            "5,000 dicts",
            "101 with lists",
            "1,000 with lists",
            "101 as bytes",
            "1,000 as bytes",
            "40,000 as bytes",
            "101 as bytes with lists",
        ],
    )
    def test_more_than_a_hundred_levels(self, payload: Any) -> None:
        message = refusal(PayloadTooDeep, "payload_too_deep", payload=payload)
        assert message == "The payload is nested more than 100 levels deep: flatten it."

    def test_a_dict_that_holds_itself(self) -> None:
        payload: dict[str, Any] = {}
        payload["self"] = payload
        refusal(PayloadTooDeep, "payload_too_deep", payload=payload)

    @pytest.mark.parametrize(
        "payload",
        [
            {"a": "x" * 257 * 1024},
            {"a": "x" * (256 * 1024 - 7)},
            b'{"a":"' + b"x" * 257 * 1024 + b'"}',
            b"{}" + b" " * 256 * 1024,
            b"not even JSON" * 100_000,
        ],
        ids=["257 KiB", "one byte", "257 KiB of bytes", "white space", "garbage"],
    )
    def test_what_is_too_large(self, payload: Any) -> None:
        message = refusal(PayloadTooLarge, "payload_too_large", payload=payload)
        assert "at most 262,144 are accepted" in message
        assert "pass a reference to it" in message

    def test_the_size_found_is_named(self) -> None:
        message = refusal(PayloadTooLarge, "payload_too_large", payload=b" " * 1_000_000)
        assert message.startswith("The payload has 1,000,000 bytes of JSON")


BAD_NAMES = [
    "",
    "x" * 256,
    "two words",
    "a/b",
    "größe",
    "a\n",
    "a\x00",
    LONE,
    "\N{ROCKET}",
    None,
    5,
    True,
    b"a",
    ["a"],
]


class TestRefused:
    @pytest.mark.parametrize("name", BAD_NAMES, ids=ascii)
    def test_types(self, name: Any) -> None:
        message = refusal(InvalidType, "invalid_type", type=name)
        assert message.startswith("A task type has 1 to 255 characters out of A-Z a-z 0-9 _ . : -")

    @pytest.mark.parametrize("name", BAD_NAMES, ids=ascii)
    def test_queues(self, name: Any) -> None:
        message = refusal(InvalidQueue, "invalid_queue", queue=name)
        assert message.startswith("A queue name has 1 to 255 characters out of A-Z a-z 0-9 _ . : -")

    @pytest.mark.parametrize("name", BAD_NAMES, ids=ascii)
    def test_names_of_capabilities(self, name: Any) -> None:
        message = refusal(
            InvalidCapabilities, "invalid_capabilities", required_capabilities=["gpu", name]
        )
        assert message.startswith("A capability has 1 to 255 characters out of A-Z a-z 0-9 _ . : -")

    @pytest.mark.parametrize("capabilities", ["gpu", "", None, 5, True], ids=repr)
    def test_capabilities_that_are_no_set(self, capabilities: Any) -> None:
        message = refusal(
            InvalidCapabilities, "invalid_capabilities", required_capabilities=capabilities
        )
        assert message.startswith('Capabilities are a set of names, for example {"gpu"}, not ')

    @pytest.mark.parametrize(("count", "shown"), [(65, "65"), (1001, "1,001")])
    def test_too_many_capabilities(self, count: int, shown: str) -> None:
        names = {f"c{n}" for n in range(count)}
        message = refusal(InvalidCapabilities, "invalid_capabilities", required_capabilities=names)
        assert message == f"A task may require at most 64 capabilities, not {shown}."

    @pytest.mark.parametrize("priority", [11, -1, "urgent", "HIGH", True, 5.5, 5.0, None, [5]])
    def test_priorities(self, priority: Any) -> None:
        message = refusal(InvalidPriority, "invalid_priority", priority=priority)
        assert "critical, high, medium, normal, low, or a whole number from 0 to 10" in message

    @pytest.mark.parametrize("retries", [-1, True, False, 1.5, 3.0, 10**9, 1001, "3", NAN])
    def test_retries(self, retries: Any) -> None:
        message = refusal(InvalidRetries, "invalid_max_retries", max_retries=retries)
        assert message.startswith("max_retries is a whole number from 0 to 1,000. Got ")

    @pytest.mark.parametrize(
        "timeout", [0, 0.0, -1, NAN, INF, -INF, "30", True, 30 * 86_400 + 1, timedelta(0)]
    )
    def test_timeouts(self, timeout: Any) -> None:
        message = refusal(InvalidTimeout, "invalid_timeout", timeout_seconds=timeout)
        assert message.startswith("timeout_seconds is a number above 0 and at most 2,592,000, or")

    @pytest.mark.parametrize(
        "delay",
        [-1, -0.001, NAN, INF, -INF, "5", True, False, None, 10**12, timedelta(seconds=-5)],
        ids=repr,
    )
    def test_delays(self, delay: Any) -> None:
        message = refusal(InvalidTime, "invalid_time", delay_seconds=delay)
        assert message.startswith("delay_seconds is a number from 0 to 316,224,000. Got ")

    @pytest.mark.parametrize("field", ["run_at", "expires_at"])
    def test_times_without_a_zone(self, field: str) -> None:
        naive = datetime(2026, 3, 1, 12)  # noqa: DTZ001 (what is refused here)
        message = refusal(InvalidTime, "invalid_time", **{field: naive})
        assert message.startswith(f"{field} has no time zone")
        assert "use datetime.now(timezone.utc) or add tzinfo=…" in message

    @pytest.mark.parametrize("field", ["run_at", "expires_at"])
    @pytest.mark.parametrize(
        "time", [0, 1.5, "2026-03-01T12:00:00Z", date(2026, 3, 1), True, timedelta(1)], ids=repr
    )
    def test_times_that_are_no_datetime(self, field: str, time: Any) -> None:
        message = refusal(InvalidTime, "invalid_time", **{field: time})
        assert message.startswith(f"{field} is a datetime with a time zone, not a value of type")

    @pytest.mark.parametrize("delay", [1, 0.001, -1, NAN])
    def test_a_delay_and_a_time(self, delay: float) -> None:
        message = refusal(InvalidTime, "invalid_time", delay_seconds=delay, run_at=NOON)
        assert message == "Give either delay_seconds or run_at, not both."

    @pytest.mark.parametrize(
        "key",
        ["", "x" * 256, "a\nb", "\x00", "\x7f", "\x85", "a\x1b[0m", LONE, 5, True, b"key", ["k"]],
        ids=ascii,
    )
    def test_idempotency_keys(self, key: Any) -> None:
        message = refusal(InvalidIdempotencyKey, "invalid_idempotency_key", idempotency_key=key)
        assert message.startswith("An idempotency key is a text of 1 to 255 characters without")

    @pytest.mark.parametrize(
        "tags",
        [[], ["a"], [("a", "b")], "a=b", 5, True, {f"t{n}": "" for n in range(65)}],
        ids=["list", "names", "pairs", "text", "number", "bool", "too many"],
    )
    def test_tags_that_are_no_small_dict(self, tags: Any) -> None:
        message = refusal(InvalidTags, "invalid_tags", tags=tags)
        assert message == "Tags are a dict with at most 64 entries."

    @pytest.mark.parametrize("text", ["x" * 256, "a\nb", "\x00", "\x9f", LONE, 5, None, True, b"b"])
    def test_names_and_values_of_tags(self, text: Any) -> None:
        for tags in ({text: "value"}, {"fine": "fine", "name": text}):
            message = refusal(InvalidTags, "invalid_tags", tags=tags)
            assert message.startswith("Tag names and values are texts of at most 255 characters")

    @pytest.mark.parametrize("field", ["trace_id", "traceparent"])
    @pytest.mark.parametrize(
        "text", ["", "x" * 513, "a\nb", "\x00", "größe", LONE, 5, True, b"00-ab"], ids=ascii
    )
    def test_trace_context(self, field: str, text: Any) -> None:
        message = refusal(InvalidTrace, "invalid_trace", **{field: text})
        assert message.startswith("Trace context is plain text, as the W3C traceparent header")

    def test_retry_policies(self) -> None:
        policy = RetryPolicy(base=-1.0)
        message = refusal(InvalidRetries, "invalid_max_retries", retry_policy=policy)
        assert message.startswith("A retry policy has base and cap from 0 to")

    @pytest.mark.parametrize("parents", [TASK_ID, "", 5, True], ids=repr)
    def test_parents_that_are_no_list(self, parents: Any) -> None:
        message = refusal(InvalidDependencies, "invalid_dependencies", depends_on=parents)
        assert message.startswith("depends_on is a list of task ids. Got ")

    @pytest.mark.parametrize("policy", ["", "Cancel", "ignore", None, True, ["cancel"]])
    def test_policies_on_the_failure_of_parents(self, policy: Any) -> None:
        message = refusal(InvalidDependencies, "invalid_dependencies", on_parent_failure=policy)
        assert message.startswith("on_parent_failure is cancel or continue. Got ")

    @pytest.mark.parametrize("unique", [0, 1, "all", {"period": 5}, Mode.REJECT, Unique])
    def test_uniqueness_in_other_words(self, unique: Any) -> None:
        message = refusal(InvalidUnique, "invalid_unique", unique=unique)
        assert message.startswith("unique is True or a Unique(…). Got ")

    @pytest.mark.parametrize("task_id", ["", "1", TASK_ID.upper(), TASK_ID + "\n", 5])
    def test_task_ids(self, task_id: Any) -> None:
        message = refusal(InvalidTaskId, "invalid_task_id", task_id=task_id)
        assert message.startswith("A task id is a UUID in its 36-character lower-case form.")

    @pytest.mark.parametrize(
        "fields",
        [
            {"type": "x y" * 100_000},
            {"idempotency_key": "x" * 1_000_000},
            {"tags": {"a": "x" * 1_000_000}},
            {"max_retries": "x" * 1_000_000},
        ],
        ids=lambda fields: next(iter(fields)),
    )
    def test_long_values_are_shown_in_part(self, fields: dict[str, Any]) -> None:
        with pytest.raises(InvalidTask, match="…") as caught:
            submitted(**fields)
        assert len(caught.value.message) < 250


class TestFingerprint:
    PAYLOAD = b'{"a":1,"b":{"c":[1,2],"d":null}}'

    @pytest.mark.parametrize(
        "same",
        [
            b'{"b":{"d":null,"c":[1,2]},"a":1}',
            b' { "a" : 1 , "b" : { "c" : [1, 2] , "d" : null } } ',
            rb'{"\u0061":1,"b":{"c":[1,2],"d":null}}',
        ],
        ids=["order of keys", "white space", "escapes"],
    )
    def test_form_makes_no_difference(self, same: bytes) -> None:
        assert fingerprint("email", same) == fingerprint("email", self.PAYLOAD)

    @pytest.mark.parametrize(
        "other",
        [
            b"{}",
            b'{"a":2,"b":{"c":[1,2],"d":null}}',
            b'{"a":1,"b":{"c":[2,1],"d":null}}',
            b'{"a":"1","b":{"c":[1,2],"d":null}}',
            b'{"a":1,"b":{"c":[1,2]}}',
        ],
    )
    def test_content_does(self, other: bytes) -> None:
        assert fingerprint("email", other) != fingerprint("email", self.PAYLOAD)

    def test_the_type_does(self) -> None:
        assert fingerprint("email", self.PAYLOAD) != fingerprint("mail", self.PAYLOAD)

    def test_large_numbers_differ_to_the_last_digit(self) -> None:
        assert fingerprint("t", b'{"n":%d}' % 10**40) != fingerprint(
            "t", b'{"n":%d}' % (10**40 + 1)
        )

    def test_it_is_the_same_for_a_dict_and_its_bytes(self) -> None:
        by_dict = submitted(payload={"b": 2, "a": 1}, idempotency_key="k")
        by_bytes = submitted(payload=b'{"a":1, "b":2}', idempotency_key="k")
        assert by_dict.fingerprint == by_bytes.fingerprint

    def test_it_is_stored_and_so_never_changes(self) -> None:
        assert fingerprint("email", self.PAYLOAD).hex() == "555df04201f00013910b8571d4cf1506"


def test_every_time_is_kept_to_the_microsecond() -> None:
    time = datetime(2031, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    assert submitted(run_at=time).run_at == math.floor(time.timestamp()) * 1_000_000 + 999_999


@pytest.mark.parametrize(
    ("kind", "code", "fields"),
    [
        (InvalidTime, "invalid_time", {"delay_seconds": 10**400}),
        (InvalidTimeout, "invalid_timeout", {"timeout_seconds": 10**400}),
        (InvalidPriority, "invalid_priority", {"priority": 10**5000}),
        (InvalidRetries, "invalid_max_retries", {"max_retries": 10**5000}),
        (InvalidRetries, "invalid_max_retries", {"retry_policy": {"base": 1}}),
        (InvalidCapabilities, "invalid_capabilities", {"required_capabilities": [10**5000]}),
        (InvalidTaskId, "invalid_task_id", {"task_id": 10**5000}),
        (InvalidPayload, "invalid_payload", {"payload": {1: "a", "1": "b"}}),
        (InvalidPayload, "invalid_payload", {"payload": {"raw": msgspec.Raw(b"{oops")}}),
        (InvalidPayload, "invalid_payload", {"payload": {"deep": RetryPolicy(base=NAN)}}),
    ],
)
def test_what_once_slipped_through_the_door(
    kind: type[InvalidInput], code: str, fields: dict[str, Any]
) -> None:
    refusal(kind, code, **fields)


@pytest.mark.parametrize("field", ["run_at", "expires_at"])
@pytest.mark.parametrize(
    "time",
    [
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-5))),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=5))),
    ],
)
def test_a_time_that_no_calendar_in_utc_has_is_refused(field: str, time: datetime) -> None:
    assert "1 to 9999" in refusal(InvalidTime, "invalid_time", **{field: time})


OPTIONS: Any = {
    "queue": "bulk",
    "priority": "high",
    "required_capabilities": {"gpu"},
    "max_retries": 7,
    "timeout_seconds": 1.5,
    "delay_seconds": 2.5,
    "expires_at": NOON,
    "tags": {"a": "b"},
    "depends_on": [TASK_ID],
}


class TestForm:
    @pytest.mark.parametrize("options", [{}, OPTIONS, {"run_at": NOON}])
    def test_filled_in_it_is_what_the_door_makes(self, options: dict[str, Any]) -> None:
        filled = new_form("email", **options).filled(b'{"a":1}')
        made = new_task("email", b'{"a":1}', **options)
        assert filled == msgspec.structs.replace(made, task_id=filled.task_id)

    @pytest.mark.parametrize("given", [None, TASK_ID])
    def test_who_chose_its_id(self, given: str | None) -> None:
        assert new_task("email", task_id=given).chosen is (given is not None)

    def test_every_task_has_an_id_of_its_own(self) -> None:
        form = new_form("email")
        ids = [form.filled(b"{}").task_id for _ in range(3)]
        assert sorted(set(ids)) == ids
        assert all(checked_id(each) for each in ids)

    def test_what_is_too_large_is_refused(self) -> None:
        form = new_form("email")
        assert form.filled(b"x" * limits.PAYLOAD_BYTES).payload
        with pytest.raises(PayloadTooLarge):
            form.filled(b"x" * (limits.PAYLOAD_BYTES + 1))

    @pytest.mark.parametrize("option", ["idempotency_key", "unique", "task_id"])
    def test_what_goes_with_one_payload_has_no_place_in_it(self, option: str) -> None:
        with pytest.raises(AssertionError):
            new_form("email", **{option: TASK_ID})


class TestReserved:
    FORMS = (
        b'{"$sealed":"k1.12345678.AAAA"}',
        b'{"$sealed":"k1.12345678.AAAA","$broken":true}',
    )

    @pytest.mark.parametrize("payload", FORMS)
    def test_nobody_submits_what_looks_encrypted(self, payload: bytes) -> None:
        form = new_form("work")
        with pytest.raises(InvalidPayload, match="reserved"):
            new_task("work", payload)
        with pytest.raises(InvalidPayload, match="reserved"):
            new_task("work", msgspec.json.decode(payload))
        with pytest.raises(InvalidPayload, match="reserved"):
            form.filled(payload)

    def test_other_payloads_with_such_a_name_are_accepted(self) -> None:
        for payload in ({"$sealed": "yes"}, {"$sealed": "k1.12345678.AAAA", "more": 1}):
            assert new_task("work", payload).payload == msgspec.json.encode(payload)


class TestRepeated:
    """A submission under an id that is stored already."""

    STORED = b'{"b": 1, "a": [1, 2]}'

    @pytest.mark.parametrize("payload", [STORED, b'{"a":[1,2],"b":1}'])
    def test_the_same_again(self, payload: bytes) -> None:
        check_repeated(new_task("work", payload), "work", self.STORED, {})

    @pytest.mark.parametrize(
        ("type", "payload"), [("other", STORED), ("work", b"{}"), ("work", b'{"b":1,"a":[2,1]}')]
    )
    def test_another_task(self, type: str, payload: bytes) -> None:
        with pytest.raises(TaskIdConflict):
            check_repeated(new_task(type, payload), "work", self.STORED, {})

    @pytest.mark.parametrize("same", [True, False])
    def test_whoever_sealed_a_payload_compares_it(self, same: bool) -> None:
        task = msgspec.structs.replace(new_task("work"), matches=lambda _: same)
        with nullcontext() if same else pytest.raises(TaskIdConflict):
            check_repeated(task, "work", b"sealed", {})

    def test_results_of_others(self) -> None:
        first, second = new_id(), new_id()

        def taking(place: int, parents: Sequence[str] = (first, second)) -> NewTask:
            return new_task("work", depends_on=parents, inputs={"got": Input((place,))})

        stored = taking(0)
        inputs = inputs_of(stored.spec.encode())
        assert inputs == {"got": TaskInput((first,))}
        check_repeated(stored, "work", b"{}", inputs)
        check_repeated(taking(1, (second, first)), "work", b"{}", inputs)
        for other in (taking(1), new_task("work"), new_task("work", depends_on=[first, second])):
            with pytest.raises(TaskIdConflict):
                check_repeated(other, "work", b"{}", inputs)
        assert inputs_of(None) == {}
