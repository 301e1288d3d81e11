"""The settings of the store, over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.server.kit import Api, refused, told

SETTINGS = "/api/v1/settings"
DAY = 86_400.0
DEFAULT = {
    "aging": {"low_to_medium": 600.0, "medium_to_high": 1200.0, "high_to_critical": None},
    "retention": {
        "completed": DAY,
        "failed": 7 * DAY,
        "cancelled": 7 * DAY,
        "dead_letter": 30 * DAY,
        "workers": DAY,
        "journal": DAY,
    },
    "requeue_spread": 0.0,
    "version": 0,
}


async def test_settings_are_read_and_changed(served: Api) -> None:
    assert await served.get(SETTINGS) == DEFAULT
    patch = {
        "aging": {"low_to_medium": None},
        "retention": {"completed": 30 * DAY, "failed": 5},
        "requeue_spread": 30,
    }
    changed = told(await served.ask("PATCH", SETTINGS, patch), 200)
    assert changed == {
        "aging": {**DEFAULT["aging"], "low_to_medium": None},  # type: ignore[dict-item]
        "retention": {**DEFAULT["retention"], "completed": 30 * DAY, "failed": 5.0},  # type: ignore[dict-item]
        "requeue_spread": 30.0,
        "version": 1,
    }
    assert await served.get(SETTINGS) == changed
    nothings: list[dict[str, Any]] = [{}, {"aging": {}}, {"retention": {}, "version": 1}]
    for nothing in nothings:
        assert told(await served.ask("PATCH", SETTINGS, nothing), 200) == changed


async def test_a_task_shows_the_new_aging(served: Api) -> None:
    task_id = await served.submit(priority="low")
    await served.world.advance(60)
    await served.ask("PATCH", SETTINGS, {"aging": {"low_to_medium": 30}})
    assert (await served.get(f"/api/v1/tasks/{task_id}"))["effective_priority"] == "medium"


async def test_a_stale_version_is_a_conflict(served: Api) -> None:
    first = {"version": 0, "retention": {"completed": 5}}
    changed = told(await served.ask("PATCH", SETTINGS, first), 200)
    stale = {"version": 0, "retention": {"completed": 6}}
    refused(await served.ask("PATCH", SETTINGS, stale), 409, "settings_conflict")
    assert await served.get(SETTINGS) == changed
    assert told(await served.ask("PATCH", SETTINGS, first), 200) == changed  # made already


BAD: list[tuple[Any, str]] = [
    ({"retention": {"completed": 0}}, "invalid_retention"),
    ({"retention": {"completed": -1}}, "invalid_retention"),
    ({"retention": {"journal": 1e18}}, "invalid_retention"),
    ({"retention": {"failed": 5, "completed": 0.5}}, "invalid_retention"),
    ({"retention": {"completed": None}}, "invalid_request"),
    ({"retention": {"completed": "1d"}}, "invalid_request"),
    ({"retention": {"completed": True}}, "invalid_request"),
    ({"retention": {"complete": 5}}, "invalid_request"),
    ({"retention": None}, "invalid_request"),
    ({"requeue_spread": -1}, "invalid_setting"),
    ({"requeue_spread": 1e6}, "invalid_setting"),
    ({"requeue_spread": None}, "invalid_request"),
    ({"requeue_spread": "30s"}, "invalid_request"),
    ({"requeue_spread": True}, "invalid_request"),
    ({"retention": {"requeue_spread": 5}}, "invalid_request"),
    ({"aging": {"low_to_medium": -1}}, "invalid_priority"),
    ({"aging": {"high_to_critical": 1e18}}, "invalid_priority"),
    ({"aging": {"low_to_medium": "soon"}}, "invalid_request"),
    ({"aging": {"low_to_high": 5}}, "invalid_request"),
    ({"aging": 5}, "invalid_request"),
    ({"completed": 5}, "invalid_request"),
    ({"version": "1", "retention": {"completed": 5}}, "invalid_request"),
    ({"version": None}, "invalid_request"),
    ([], "invalid_request"),
]


@pytest.mark.parametrize(("patch", "code"), BAD, ids=[json.dumps(patch) for patch, _ in BAD])
async def test_settings_that_do_not_fit(api: Api, patch: Any, code: str) -> None:
    refused(await api.ask("PATCH", SETTINGS, patch), 422, code)
    assert await api.get(SETTINGS) == DEFAULT
