"""What flows and how fast, over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.server.kit import Api, refused, told

V1 = "/api/v1"
UNLIMITED = {
    "paused": False,
    "rate_limit": 0.0,
    "concurrency": 0,
    "timeout_seconds": 0.0,
    "circuit_breaker": None,
    "open_until": None,
}
NOTHING_SET = {"paused": False, "rate_limit": 0.0, "paused_queues": [], "types": {}}


async def test_queues_are_paused_and_resumed(served: Api) -> None:
    await served.submit(queue="a")
    await served.submit(queue="a", delay_seconds=60)
    assert await served.post(f"{V1}/queues/b/pause") == {"queue": "b", "paused": True}
    one, two = (await served.get(f"{V1}/queues"))["queues"]
    assert (one["queue"], one["paused"], one["depth"]) == ("a", False, 1)
    assert one["by_status"]["scheduled"] == 1
    assert one["oldest_age_seconds"] >= 0
    assert (two["queue"], two["paused"], two["depth"]) == ("b", True, 0)
    assert await served.post(f"{V1}/queues/b/resume") == {"queue": "b", "paused": False}
    controls = await served.world.run(served.world.ops.controls())
    assert controls.paused_queues == frozenset()


async def test_types_are_limited(served: Api) -> None:
    await served.submit("mail")
    breaker = {"failures": 3, "within_seconds": 60.0, "cooldown_seconds": 5.0}
    rules = {
        "rate_limit": 2.5,
        "concurrency": 4,
        "timeout_seconds": 30.0,
        "paused": True,
        "circuit_breaker": breaker,
    }
    path = f"{V1}/types/mail"
    set_ = told(await served.ask("PATCH", path, rules), 200)
    assert set_ == {"type": "mail", **UNLIMITED, **rules}
    (shown,) = (await served.get(f"{V1}/types"))["types"]
    assert shown == {**set_, "held": 0, "by_status": shown["by_status"]}
    assert shown["by_status"]["queued"] == 1
    part = told(await served.ask("PATCH", path, {"concurrency": 1}), 200)
    assert part == {**set_, "concurrency": 1}
    assert told(await served.ask("PATCH", path, {}), 200) == part
    nothing = {
        "rate_limit": None,
        "concurrency": None,
        "timeout_seconds": None,
        "circuit_breaker": None,
        "paused": False,
    }
    assert told(await served.ask("PATCH", path, nothing), 200) == {"type": "mail", **UNLIMITED}


async def test_everything_is_limited(served: Api) -> None:
    assert await served.get(f"{V1}/control") == NOTHING_SET
    set_ = await served.post(f"{V1}/control", {"paused": True, "rate_limit": 7})
    assert set_ == {**NOTHING_SET, "paused": True, "rate_limit": 7.0}
    assert await served.post(f"{V1}/control", {"paused": False}) == {
        **NOTHING_SET,
        "rate_limit": 7.0,
    }
    assert await served.post(f"{V1}/control", {"rate_limit": None}) == NOTHING_SET
    await served.world.run(served.world.ops.pause(True, type="x"))  # noqa: FBT003
    assert (await served.get(f"{V1}/control"))["types"] == {"x": {**UNLIMITED, "paused": True}}


PATCHES: list[tuple[Any, str]] = [
    ({"rate_limit": -1}, "invalid_limit"),
    ({"rate_limit": 1e7}, "invalid_limit"),
    ({"rate_limit": "5"}, "invalid_request"),
    ({"rate_limit": True}, "invalid_request"),
    ({"paused": None}, "invalid_request"),
    ({"paused": 1}, "invalid_request"),
    ({"paused": True, "rate_limit": -1}, "invalid_limit"),
    ({"unknown": 1}, "invalid_request"),
    ([], "invalid_request"),
]
TYPE_PATCHES: list[tuple[Any, str]] = [
    *PATCHES,
    ({"timeout_seconds": -1}, "invalid_limit"),
    ({"timeout_seconds": 1e9}, "invalid_limit"),
    ({"timeout_seconds": "5"}, "invalid_request"),
    ({"concurrency": -1}, "invalid_limit"),
    ({"concurrency": 1.5}, "invalid_request"),
    ({"concurrency": 10**7}, "invalid_limit"),
    ({"circuit_breaker": False}, "invalid_request"),
    ({"circuit_breaker": {"failures": 3}}, "invalid_request"),
    (
        {"circuit_breaker": {"failures": 0, "within_seconds": 1, "cooldown_seconds": 1}},
        "invalid_limit",
    ),
    (
        {"circuit_breaker": {"failures": 1, "within_seconds": 0, "cooldown_seconds": 1}},
        "invalid_limit",
    ),
    (
        {"circuit_breaker": {"failures": 1, "within_seconds": 1, "cooldown_seconds": 1, "x": 1}},
        "invalid_request",
    ),
]


@pytest.mark.parametrize(
    ("patch", "code"), TYPE_PATCHES, ids=[json.dumps(p) for p, _ in TYPE_PATCHES]
)
async def test_limits_of_a_type_that_do_not_fit(api: Api, patch: Any, code: str) -> None:
    refused(await api.ask("PATCH", f"{V1}/types/mail", patch), 422, code)
    assert await api.get(f"{V1}/control") == NOTHING_SET


@pytest.mark.parametrize(("patch", "code"), PATCHES, ids=[json.dumps(p) for p, _ in PATCHES])
async def test_limits_of_everything_that_do_not_fit(api: Api, patch: Any, code: str) -> None:
    refused(await api.ask("POST", f"{V1}/control", patch), 422, code)
    assert await api.get(f"{V1}/control") == NOTHING_SET


@pytest.mark.parametrize("name", ["a%20b", "%00", "x" * 256, "%C3%A9"])
async def test_names_that_cannot_be(api: Api, name: str) -> None:
    answers = [
        await api.ask("POST", f"{V1}/queues/{name}/pause"),
        await api.ask("POST", f"{V1}/queues/{name}/resume"),
        await api.ask("PATCH", f"{V1}/types/{name}", {"paused": True}),
        await api.ask("PATCH", f"{V1}/types/{name}", {"concurrency": 1}),
        await api.ask("PATCH", f"{V1}/types/{name}", {}),
    ]
    for answer in answers:
        refused(answer, 422, "invalid_limit")
    assert await api.get(f"{V1}/control") == NOTHING_SET
