"""Schedules over HTTP: declared, changed, paused, run and looked at."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fairlane.core import recurrence
from fairlane.core.ids import new_id
from fairlane.core.recurrence import Cron, cron
from fairlane.core.schedules import new_schedule
from fairlane.core.submission import new_task
from fairlane.core.zones import zone_of
from fairlane.wire.times import iso_of
from tests.server.http.kit import Reply
from tests.server.kit import Api, refused, told
from tests.server.security.kit import audit_log

SCHEDULES = "/api/v1/schedules"
DECLARED = "/internal/workers/schedules"
TASK = {"task_type": "echo", "parameters": {"b": 1, "a": "é"}}
HOURLY: dict[str, Any] = {"schedule_id": "hourly", "every_seconds": 3600, "task": TASK}
NIGHTLY: dict[str, Any] = {
    "schedule_id": "nightly",
    "cron": "30 2 * * MON-FRI",
    "tz": "Europe/Berlin",
    "task": {
        **TASK,
        "queue": "mail",
        "priority": "high",
        "max_retries": 7,
        "timeout_seconds": 30.0,
        "delay_seconds": 5.0,
        "required_capabilities": ["gpu"],
        "tags": {"team": "shop"},
    },
    "missed": "all",
    "most": 48,
    "within_seconds": 172_800.0,
    "overlap": "queue",
    "jitter_seconds": 30.0,
    "starts_at": "2026-01-01T00:00:00.000000Z",
    "ends_at": "2100-01-01T00:00:00.000000Z",
    "count": 1_000,
    "pause_after_failures": 5,
    "note": "what the night is for",
}


async def created(api: Api, body: dict[str, Any] = HOURLY) -> dict[str, Any]:
    found: dict[str, Any] = await api.post(SCHEDULES, body, 201)
    return found


async def fire(api: Api) -> list[tuple[str, str]]:
    fired = await api.world.run(api.world.ops.fire_due())
    return [(schedule_id, run.outcome) for schedule_id, run in fired.handled]


async def test_what_is_declared_is_shown(served: Api) -> None:
    reply = await served.ask("POST", SCHEDULES, NIGHTLY)
    shown = told(reply, 201)
    assert reply.headers["etag"] == '"1"'
    assert {name: shown[name] for name in NIGHTLY if name != "task"} == {
        name: value for name, value in NIGHTLY.items() if name != "task"
    }
    assert shown["task"] == {**NIGHTLY["task"], "retry_policy": shown["task"]["retry_policy"]}
    assert shown["in_words"] == "At 02:30 on Monday through Friday, Europe/Berlin"
    about = ("source", "owner", "state", "pause", "version", "failures", "remaining", "runs")
    assert [shown[name] for name in about] == ["api", None, "active", None, 1, 0, 1_000, []]
    assert shown["totals"] == {"fired": 0, "skipped": 0, "missed": 0}
    assert (shown["last_at"], shown["last_task_id"]) == (None, None)
    first, *others = shown["upcoming"]
    assert (shown["next_at"], len(others)) == (first["at"], 4)
    assert "T02:30:00+0" in first["local"]
    assert await served.get(f"{SCHEDULES}/nightly") == shown
    (listed,) = (await served.get(SCHEDULES))["schedules"]
    assert listed == {**shown, "upcoming": [first]}


async def test_a_schedule_goes_round(served: Api) -> None:
    """What is shown can be sent again, and is the same then."""
    shown = await created(served, NIGHTLY)
    assert (await served.ask("DELETE", f"{SCHEDULES}/nightly")).status == 204
    again = {name: shown[name] for name in [*NIGHTLY, "every_seconds", "offset_seconds"]}
    assert (await created(served, again))["fingerprint"] == shown["fingerprint"]


async def test_it_is_the_schedule_that_a_process_would_declare(served: Api) -> None:
    shown = await created(served, NIGHTLY)
    day = timedelta(days=1)
    task = NIGHTLY["task"]
    options = {name: task[name] for name in task if name not in TASK}
    schedule = new_schedule(
        "nightly",
        cron("30 2 * * MON-FRI", "Europe/Berlin"),
        new_task("echo", json.dumps(TASK["parameters"]).encode(), **options),
        missed="all",
        most=48,
        within=2 * day,
        overlap="queue",
        jitter=30,
        starts_at=datetime(2026, 1, 1, tzinfo=UTC),
        ends_at=datetime(2100, 1, 1, tzinfo=UTC),
        count=1_000,
        pause_after_failures=5,
        note=NIGHTLY["note"],
    )
    assert schedule.fingerprint.hex() == shown["fingerprint"]


async def test_a_tick_and_its_task(served: Api) -> None:
    before = await created(served)
    await served.world.advance(3_600)
    assert await fire(served) == [("hourly", "fired")]
    shown = await served.get(f"{SCHEDULES}/hourly")
    (task,) = (await served.get("/api/v1/tasks", schedule_id="hourly"))["tasks"]
    assert (await served.get("/api/v1/tasks", schedule_id="other"))["tasks"] == []
    assert (task["schedule_id"], task["scheduled_for"]) == ("hourly", before["next_at"])
    assert (task["task_type"], task["parameters"]) == ("echo", TASK["parameters"])
    assert (shown["last_at"], shown["last_task_id"]) == (before["next_at"], task["task_id"])
    (run,) = shown["runs"]
    tick = {"tick": before["next_at"], "task_id": task["task_id"]}
    assert run == {**tick, "outcome": "fired", "count": 1, "reason": ""}
    assert shown["totals"] == {"fired": 1, "skipped": 0, "missed": 0}
    assert shown["version"] == 1
    plain = await served.submit()
    assert (await served.get(f"/api/v1/tasks/{plain}"))["scheduled_for"] is None


async def test_a_worker_is_told_the_tick(served: Api) -> None:
    before = await created(served)
    await served.world.advance(3_600)
    await fire(served)
    await served.submit()
    worker = (await served.post("/internal/workers/register", {}))["worker_id"]
    poll = {"available_capacity": 2}
    tasks = (await served.post(f"/internal/workers/{worker}/poll", poll))["tasks"]
    ticks = {task["task_type"]: (task["scheduled_for"], task["scheduled_tz"]) for task in tasks}
    assert ticks == {"echo": (before["next_at"], "UTC"), "work": (None, None)}


async def test_changes(served: Api) -> None:
    path = f"{SCHEDULES}/nightly"
    shown = await created(served, NIGHTLY)

    async def patched(**patch: Any) -> dict[str, Any]:
        found: dict[str, Any] = told(await served.ask("PATCH", path, patch), 200)
        assert await served.get(path) == found
        return found

    assert await patched() == shown
    noted = await patched(note="other")
    assert (noted["note"], noted["version"], noted["next_at"]) == ("other", 2, shown["next_at"])
    assert noted["task"] == shown["task"]
    other = await patched(cron="0 4 * * *")
    assert (other["cron"], other["tz"]) == ("0 4 * * *", "Europe/Berlin")
    assert (await patched(tz="UTC"))["tz"] == "UTC"
    rule = await patched(every_seconds=60, offset_seconds=30)
    assert [rule[name] for name in ("cron", "tz", "every_seconds", "offset_seconds")] == [
        *(None, None),
        *(60.0, 30.0),
    ]
    assert rule["in_words"] == "Every minute, 30 seconds later"
    assert (await patched(offset_seconds=10))["every_seconds"] == 60.0
    back = await patched(cron="@daily", every_seconds=None, tz=None, count=None, ends_at=None)
    assert (back["cron"], back["tz"], back["every_seconds"]) == ("0 0 * * *", "UTC", None)
    assert (back["count"], back["ends_at"], back["remaining"]) == (None, None, None)
    task = (await patched(task={"task_type": "sleep"}))["task"]
    assert (task["task_type"], task["queue"], task["tags"]) == ("sleep", "default", {})
    assert "timeout_seconds" not in task


async def test_a_stale_version_is_a_conflict(served: Api) -> None:
    path = f"{SCHEDULES}/hourly"
    await created(served)
    reply = await served.ask("PATCH", path, {"note": "a"}, if_match='"1"')
    assert (told(reply, 200)["version"], reply.headers["etag"]) == (2, '"2"')
    for method, body in (("PATCH", {"note": "b"}), ("DELETE", None)):
        stale = await served.ask(method, path, body, if_match='"1"')
        refused(stale, 409, "schedule_conflict")
        for wrong in ("2", 'W/"2"', '"x"', '"2", "3"', '"٣"'.encode().decode("latin-1")):
            reply = await served.ask(method, path, body, if_match=wrong)
            refused(reply, 422, "invalid_request")
    assert (await served.get(path))["note"] == "a"
    told(await served.ask("PATCH", path, {"note": "c"}, if_match="*"), 200)
    assert (await served.ask("DELETE", path, if_match='"3"')).status == 204


async def test_a_zone_that_the_server_does_not_know(
    served: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process has stored it. It takes nothing away from those who read."""
    new: Any = Cron("0 3 * * *", "Mars/Olympus")
    with monkeypatch.context() as patch:
        patch.setattr(recurrence, "zone_of", lambda _: zone_of("UTC"))
        schedule = new_schedule("new", new, new_task("echo"))
        (stored,) = await served.world.run(served.world.ops.put_schedules([schedule]))
    await created(served)
    found = {each["schedule_id"]: each for each in (await served.get(SCHEDULES))["schedules"]}
    assert found["hourly"]["problem"] is None
    shown = found["new"]
    assert shown["problem"] == stored.problem
    assert (shown["state"], shown["upcoming"]) == ("active", [])
    assert shown["next_at"] == iso_of(stored.standing.tick or 0)
    assert await served.get(f"{SCHEDULES}/new") == shown
    paused = await served.post(f"{SCHEDULES}/new/pause", {"note": "why"})
    assert (paused["state"], paused["problem"]) == ("paused", stored.problem)
    patched = await served.ask("PATCH", f"{SCHEDULES}/new", {"tz": "UTC"})
    assert told(patched, 200)["problem"] is None


async def test_an_id_that_is_taken(served: Api) -> None:
    first = await created(served)
    reply = await served.ask("POST", SCHEDULES, {**HOURLY, "note": "other"})
    refused(reply, 409, "schedule_conflict")
    assert b"There is a schedule hourly already" in reply.body
    assert await served.get(f"{SCHEDULES}/hourly") == first


async def test_a_creation_can_be_repeated_whose_answer_was_lost(served: Api) -> None:
    first = await created(served)
    assert await created(served) == first
    await served.post(f"{SCHEDULES}/hourly/pause")
    refused(await served.ask("POST", SCHEDULES, HOURLY), 409, "schedule_conflict")


async def test_one_that_is_not_there(served: Api) -> None:
    await created(served)
    unknown = ("other", "HOURLY", "x" * 201, "x" * 10_240, "a%20b", "%00", "%ff", "%23ticks")
    for each in unknown:
        path = f"{SCHEDULES}/{each}"
        requests: list[tuple[str, str, Any]] = [
            *(("GET", path, None), ("PATCH", path, {"note": "a"}), ("DELETE", path, None)),
            *(("POST", f"{path}/{verb}", {}) for verb in ("pause", "resume", "run")),
        ]
        days = {"since": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z"}
        requests += [
            ("POST", f"{path}/backfill", {**days, "dry_run": dry}) for dry in (True, False)
        ]
        for method, target, body in requests:
            reply = await served.ask(method, target, body)
            assert reply.status == 404, (method, target, reply.body)
            assert reply.code in {"unknown_schedule", "not_found"}
    assert len((await served.get(SCHEDULES))["schedules"]) == 1
    assert (await served.get("/api/v1/tasks"))["tasks"] == []


async def test_pausing_and_resuming(served: Api) -> None:
    path = f"{SCHEDULES}/hourly"
    await created(served)
    paused = await served.post(f"{path}/pause", {"note": "migration"})
    assert (paused["state"], paused["pause"]["note"], paused["pause"]["until"]) == (
        *("paused", "migration"),
        None,
    )
    assert (paused["next_at"], paused["upcoming"], paused["version"]) == (None, [], 2)
    await served.world.advance(7_200)
    assert await fire(served) == []
    resumed = await served.post(f"{path}/resume")
    assert (resumed["state"], resumed["pause"]) == ("active", None)
    assert [(run["outcome"], run["count"]) for run in resumed["runs"]] == [("paused", 2)]
    until = (datetime.now(UTC) + timedelta(hours=5)).isoformat()
    paused = await served.post(f"{path}/pause", {"until": until})
    assert paused["pause"]["until"] is not None
    assert paused["next_at"] > paused["pause"]["until"]
    await served.world.advance(3 * 3_600)
    await served.post(f"{path}/resume", {"missed": "once"})
    assert ("hourly", "fired") in await fire(served)


async def test_running_besides_the_ticks(served: Api) -> None:
    path = f"{SCHEDULES}/hourly/run"
    await created(served)
    at = "2026-01-31T12:00:00.000000Z"
    task_id = (await served.post(path, {"at": at}, 201))["task_id"]
    task = await served.get(f"/api/v1/tasks/{task_id}")
    assert (task["scheduled_for"], task["schedule_id"]) == (at, "hourly")
    mine = new_id()
    for _ in range(2):
        assert await served.post(path, {"task_id": mine}, 201) == {"task_id": mine}
    await served.post(path, None, 201)
    assert len((await served.get("/api/v1/tasks"))["tasks"]) == 3
    runs = (await served.get(f"{SCHEDULES}/hourly"))["runs"]
    assert [run["outcome"] for run in runs] == ["manual"] * 3
    assert runs[-1]["tick"] == at


async def test_backfilling(served: Api) -> None:
    path = f"{SCHEDULES}/hourly/backfill"
    await created(served)
    day = {"since": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z"}
    assert await served.post(path, {**day, "dry_run": True}) == {"count": 24, "task_ids": []}
    assert (await served.get("/api/v1/tasks"))["tasks"] == []
    assert [action for _, action, _, _ in await audit_log(served.world)] == ["schedule.put"]
    mine = {**day, "task_id": new_id()}
    first = await served.post(path, mine)
    assert await served.post(path, mine) == first
    assert (first["count"], len(first["task_ids"]), first["task_ids"][0]) == (
        *(24, 24),
        mine["task_id"],
    )
    tasks = (await served.get("/api/v1/tasks", limit=100))["tasks"]
    assert {task["task_id"] for task in tasks} == set(first["task_ids"])
    assert sum(task["status"] == "queued" for task in tasks) == 1  # the others wait for it
    at_once = await served.post(path, {**day, "overlap": "allow"})
    queued = (await served.get("/api/v1/tasks", status="queued", limit=100))["tasks"]
    assert {task["task_id"] for task in queued} > set(at_once["task_ids"])
    year = {"since": "2025-01-01T00:00:00Z", "until": "2026-01-01T00:00:00Z"}
    coming = {"since": "2089-01-01T00:00:00Z", "until": "2089-01-02T00:00:00Z"}
    for dry_run in (True, False):
        for time in (year, coming):
            reply = await served.ask("POST", path, {**time, "dry_run": dry_run})
            refused(reply, 422, "invalid_schedule")


async def test_what_is_known_of_a_type_counts(served: Api) -> None:
    definition = {
        "type": "echo",
        "queue": "slow",
        "max_retries": 1,
        "unique": True,
        "parameters": {"type": "object", "required": ["day"], "properties": {"day": {}}},
    }
    await served.post("/internal/workers/definitions", {"definitions": [definition]})
    reply = await served.ask("POST", SCHEDULES, HOURLY)
    assert refused(reply, 422, "invalid_arguments") == {"parameter": "day"}
    task = {"task_type": "echo", "parameters": {"day": 1}}
    shown = (await created(served, {**HOURLY, "task": task}))["task"]
    assert (shown["queue"], shown["max_retries"]) == ("slow", 1)
    path = f"{SCHEDULES}/hourly"
    refused(await served.ask("PATCH", path, {"task": TASK}), 422, "invalid_arguments")
    as_it_is = {**TASK, "use_definition": False}
    shown = told(await served.ask("PATCH", path, {"task": as_it_is}), 200)["task"]
    assert (shown["queue"], shown["max_retries"]) == ("default", 3)


async def test_a_type_that_nobody_handles(served: Api) -> None:
    """Nothing is stored, and the message says what to do."""
    typo = {**HOURLY, "task": {"task_type": "ehco"}}
    reply = await served.ask("POST", SCHEDULES, typo)
    assert refused(reply, 422, "unknown_type") == {"similar": ["echo"]}
    message = json.loads(reply.body)["error"]["message"]
    assert "Did you mean echo?" in message
    assert "allow_unknown_type" in message
    assert (await served.get(SCHEDULES))["schedules"] == []
    shown = await created(served, {**typo, "allow_unknown_type": True})
    assert shown["task"]["task_type"] == "ehco"
    path = f"{SCHEDULES}/hourly"
    assert told(await served.ask("PATCH", path, {"note": "why"}), 200)["note"] == "why"
    other = {"task": {"task_type": "nobody"}}
    refused(await served.ask("PATCH", path, other), 422, "unknown_type")
    assert (await served.get(path))["task"]["task_type"] == "ehco"
    told(await served.ask("PATCH", path, {**other, "allow_unknown_type": True}), 200)


async def test_many_are_read_in_pages(served: Api) -> None:
    for number in range(5):
        await created(served, {**HOURLY, "schedule_id": f"s{number}"})
    found: list[str] = []
    query: dict[str, Any] = {"limit": 2}
    while True:
        page = await served.get(SCHEDULES, **query)
        found += [each["schedule_id"] for each in page["schedules"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert sorted(found) == [f"s{number}" for number in range(5)]
    await served.post(f"{SCHEDULES}/s0/run", None, 201)
    for count in (0, 1, 100):
        (listed, *_) = (await served.get(SCHEDULES, runs=count, limit=1))["schedules"]
        assert len(listed["runs"]) == min(count, 1)
    for wrong in ("limit=0", "limit=101", "limit=x", "runs=-1", "runs=101"):
        refused(await served.ask("GET", f"{SCHEDULES}?{wrong}"), 422, "invalid_request")
    refused(await served.ask("GET", f"{SCHEDULES}?cursor=x"), 400, "invalid_cursor")


async def test_what_code_declares(served: Api) -> None:
    body = {"owner": "shop", "schedules": [HOURLY]}
    (first,) = (await served.post(DECLARED, body))["schedules"]
    assert (first["source"], first["owner"]) == ("code", "shop")
    assert (await served.post(DECLARED, body))["schedules"] == [first]
    path = f"{SCHEDULES}/hourly"
    reply = await served.ask("PATCH", path, {"note": "mine"})
    refused(reply, 409, "schedule_conflict")
    assert b"declared by the code of shop" in reply.body
    assert (await served.post(f"{path}/pause"))["state"] == "paused"
    changed = {**body, "schedules": [{**HOURLY, "note": "theirs"}]}
    (again,) = (await served.post(DECLARED, changed))["schedules"]
    assert (again["note"], again["state"]) == ("theirs", "paused")


async def test_what_was_made_by_hand_is_not_declared(served: Api) -> None:
    first = await created(served)
    body = {"owner": "shop", "schedules": [HOURLY, {**HOURLY, "schedule_id": "other"}]}
    reply = await served.ask("POST", DECLARED, body)
    refused(reply, 409, "schedule_conflict")
    assert b"fairlane schedule delete hourly" in reply.body
    assert (await served.get(SCHEDULES))["schedules"] == [
        {**first, "upcoming": first["upcoming"][:1]}
    ]


async def test_only_declarations_that_change_something_are_recorded(served: Api) -> None:
    body = {"owner": "shop", "schedules": [HOURLY]}
    changed = {**body, "schedules": [{**HOURLY, "note": "new"}]}
    for each in (body, body, changed, changed, {**changed, "owner": "office"}):
        await served.post(DECLARED, each)
    log = [(actor, action, subject) for actor, action, subject, _ in await audit_log(served.world)]
    put, taken = ("anyone", "schedule.put", "hourly"), ("code:office", "schedule.take", "hourly")
    assert log == [put, put, taken, put]


async def test_a_preview(api: Api) -> None:
    path = f"{SCHEDULES}/preview"
    rule = {"cron": "30 2 * * *", "tz": "Europe/Berlin", "after": "2026-03-27T12:00:00Z"}
    found = await api.post(path, {**rule, "count": 3})
    assert found == {
        "in_words": "At 02:30 every day, Europe/Berlin",
        "ticks": [
            {
                "at": "2026-03-28T01:30:00.000000Z",
                "local": "2026-03-28T02:30:00+01:00",
                "note": None,
            },
            {
                "at": "2026-03-29T01:00:00.000000Z",
                "local": "2026-03-29T03:00:00+02:00",
                "note": "The clock is set forward past its time: it fires right after that.",
            },
            {
                "at": "2026-03-30T00:30:00.000000Z",
                "local": "2026-03-30T02:30:00+02:00",
                "note": None,
            },
        ],
    }
    ticks = (await api.post(path, {"every_seconds": 90}))["ticks"]
    assert len(ticks) == 5
    assert ticks[0]["at"] > datetime.now(UTC).isoformat()[:19]


async def test_changes_are_recorded_without_payloads(served: Api) -> None:
    secret = {**HOURLY, "task": {"task_type": "echo", "parameters": {"secret": "hidden"}}}
    await created(served, secret)
    (entry,) = (await served.get("/api/v1/audit"))["entries"]
    assert (entry["action"], entry["detail"]["task"]) == ("schedule.put", {"task_type": "echo"})
    assert "hidden" not in json.dumps(entry)


BIG = {"task_type": "echo", "parameters": {"a": "x" * 256 * 1024}}
RULES: list[dict[str, Any]] = [
    *({"cron": each} for each in ("", "* * * *", "* * * * * *", "60 * * * *", "*/0 * * * *")),
    *({"cron": each} for each in ("0 0 30 2 *", "? * * * *", "@never", "x" * 10_240, "a b c d e")),
    *({"cron": each} for each in ("\0 * * * *", "* * * * *\n* * * * *", "0 0 1 1 * 2026")),
    *({"cron": "@daily", "tz": each} for each in ("Mars/Base", "../../etc/passwd", "", "\0")),
    *({"every_seconds": each} for each in (0, -1, 0.5, 1e12, 1e400)),
    {"every_seconds": 60, "offset_seconds": 60},
    {"every_seconds": 60, "offset_seconds": -1},
    {"every_seconds": 60, "tz": "UTC"},
    {"cron": "@daily", "offset_seconds": 5},
    {"cron": "@daily", "every_seconds": 60},
    {},
]
SHAPES: list[dict[str, Any]] = [
    *({"cron": 5}, {"cron": ["* * * * *"]}, {"cron": {}}),
    *({"every_seconds": "5m"}, {"every_seconds": True}),
]
POLICIES: list[tuple[dict[str, Any], str]] = [
    *(({"most": each}, "invalid_schedule") for each in (0, -1, 1_001)),
    *(({"count": each}, "invalid_schedule") for each in (0, -1, 10**10)),
    *(({"pause_after_failures": each}, "invalid_schedule") for each in (0, -1)),
    *(({"within_seconds": each}, "invalid_schedule") for each in (0, 0.5, -1, 1e18)),
    *(({"jitter_seconds": each}, "invalid_schedule") for each in (-1, 1e18)),
    *(({"note": each}, "invalid_schedule") for each in ("x" * 1_001, "a\nb", "\0")),
    ({"ends_at": "2020-01-01T00:00:00Z"}, "invalid_schedule"),
    ({"ends_at": "2090-01-01T00:00:00"}, "invalid_schedule"),
    (
        {"starts_at": "2091-01-01T00:00:00Z", "ends_at": "2090-01-01T00:00:00Z"},
        "invalid_schedule",
    ),
    *(({"ends_at": each}, "invalid_request") for each in ("tomorrow", 5, "2026-02-30T00:00:00Z")),
    *(({"missed": each}, "invalid_request") for each in ("sometimes", None, 1)),
    *(({"overlap": each}, "invalid_request") for each in ("SKIP", "", None)),
    *(({"most": each}, "invalid_request") for each in (True, "5", 1.5, None)),
    *(({"schedule_id": each}, "invalid_schedule") for each in ("", "a b", "#ticks")),
    *(({"schedule_id": each}, "invalid_schedule") for each in ("x" * 201, "preview")),
    *(({"schedule_id": each}, "invalid_request") for each in (None, 5)),
    *(({"unknown": each}, "invalid_request") for each in (1, None)),
    ({"version": 1}, "invalid_request"),
    ({"task": {}}, "invalid_request"),
    ({"task": None}, "invalid_request"),
    ({"task": {**TASK, "run_at": "2090-01-01T00:00:00Z"}}, "invalid_request"),
    ({"task": {**TASK, "idempotency_key": "k"}}, "invalid_request"),
    ({"task": {**TASK, "unique": True}}, "invalid_request"),
    ({"task": {**TASK, "task_type": "no name"}}, "invalid_type"),
    ({"task": {**TASK, "queue": "no name"}}, "invalid_queue"),
    ({"task": {**TASK, "priority": 11}}, "invalid_priority"),
    ({"task": {**TASK, "max_retries": -1}}, "invalid_max_retries"),
    ({"task": {**TASK, "delay_seconds": -1}}, "invalid_time"),
    ({"task": {**TASK, "parameters": []}}, "invalid_payload"),
]


async def unchanged(api: Api, reply: Reply) -> None:
    assert reply.status < 500, reply.body
    assert len(reply.body) < 2_000
    assert (await api.get(SCHEDULES))["schedules"] == []


@pytest.mark.parametrize("rule", [*RULES, *SHAPES], ids=lambda rule: json.dumps(rule)[:60])
async def test_rules_that_cannot_be(api: Api, rule: dict[str, Any]) -> None:
    code = "invalid_schedule" if rule in RULES else "invalid_request"
    for path, body in ((SCHEDULES, {"schedule_id": "a", "task": TASK, **rule}), ("", rule)):
        reply = await api.ask("POST", path or f"{SCHEDULES}/preview", body)
        infinite = rule.get("every_seconds") == float("inf")  # which is no JSON as we send it
        refused(reply, *((400, "invalid_json") if infinite else (422, code)))
        await unchanged(api, reply)


@pytest.mark.parametrize(
    ("policy", "code"), POLICIES, ids=[json.dumps(each)[:60] for each, _ in POLICIES]
)
async def test_policies_that_cannot_be(api: Api, policy: dict[str, Any], code: str) -> None:
    reply = await api.ask("POST", SCHEDULES, {**HOURLY, **policy})
    refused(reply, 422, code)
    await unchanged(api, reply)


async def test_a_payload_beyond_its_limit(api: Api) -> None:
    refused(await api.ask("POST", SCHEDULES, {**HOURLY, "task": BIG}), 413, "payload_too_large")
    await created(api)
    path = f"{SCHEDULES}/hourly"
    refused(await api.ask("PATCH", path, {"task": BIG}), 413, "payload_too_large")


ASKS: list[tuple[str, Any, str]] = [
    ("pause", {"until": "2020-01-01T00:00:00Z"}, "invalid_schedule"),
    ("pause", {"until": "2090-01-01T00:00:00"}, "invalid_schedule"),
    ("pause", {"until": "later"}, "invalid_request"),
    ("pause", {"note": "a\nb"}, "invalid_schedule"),
    ("pause", {"note": None}, "invalid_request"),
    ("pause", {"why": "x"}, "invalid_request"),
    ("resume", {"missed": "some"}, "invalid_request"),
    ("run", {"at": "2026-01-01T00:00:00"}, "invalid_schedule"),
    ("run", {"at": 5}, "invalid_request"),
    ("run", {"task_id": "x"}, "invalid_task_id"),
    ("backfill", {}, "invalid_request"),
    ("backfill", {"since": "2026-01-01T00:00:00", "until": "2026-01-02T00:00:00Z"}, ""),
    ("backfill", {"since": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z"}, "overlap"),
]


@pytest.mark.parametrize(
    ("verb", "body", "code"), ASKS, ids=[f"{verb} {body}" for verb, body, _ in ASKS]
)
async def test_what_cannot_be_asked_of_one(api: Api, verb: str, body: Any, code: str) -> None:
    before = await created(api)
    if code == "overlap":
        body, code = {**body, "overlap": "never"}, "invalid_request"
    reply = await api.ask("POST", f"{SCHEDULES}/hourly/{verb}", body)
    refused(reply, 422, code or "invalid_schedule")
    assert await api.get(f"{SCHEDULES}/hourly") == before
    assert (await api.get("/api/v1/tasks"))["tasks"] == []
