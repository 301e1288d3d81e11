"""Pauses, limits, workers, the schema, the overview."""

import json
from pathlib import Path
from typing import Any

from fairlane.cli.commands.doctor import clock_check
from fairlane.cli.commands.top_screen import Screen
from fairlane.cli.worker_checks import check_held_back, check_unserved
from fairlane.client.app import Fairlane
from fairlane.core.errors import StoreUnavailable
from fairlane.core.facts import Facts
from fairlane.core.model import Beat
from fairlane.core.stats import UNSERVED
from fairlane.core.unserved import UnservedLane
from fairlane.core.why import NOBODY
from tests.cli.kit import Cli, in_store
from tests.fixtures.stores import World


def worker(**options: Any) -> str:
    """A worker that is known to the store."""

    async def use(app: Fairlane) -> str:
        await app.stats()
        return await World(app.backend, app.url, {}).worker(**options)

    worker_id: str = in_store(use)
    return worker_id


def holding(*types: str) -> str:
    """A worker that holds these types back."""
    worker_id = worker(lease=10_000)

    async def use(app: Fairlane) -> None:
        await app.run(app.backend.ops.heartbeat(Beat(worker_id, health={"held_back": types})))

    in_store(use)
    return worker_id


def test_pause_and_resume(ready: Cli) -> None:
    assert ready.json("pause", "--yes") == {
        "paused": True,
        "rate_limit": 0.0,
        "paused_queues": [],
        "types": {},
    }
    assert ready.ok("pause", "--queue", "q") == "Queue q is paused: running tasks go on.\n"
    assert ready.ok("pause", "--type", "t") == "Type t is paused: running tasks go on.\n"
    found = ready.json("resume")
    assert (found["paused"], found["paused_queues"]) == (False, ["q"])
    assert found["types"]["t"]["paused"] is True
    assert ready.ok("resume", "--queue", "q") == "Queue q is no longer paused.\n"
    assert ready.json("resume", "--type", "t")["types"].get("t", {}).get("paused", False) is False


def test_limits(ready: Cli) -> None:
    assert ready.json("limit", "work", "--rate", "2.5", "--breaker", "5,1m,30") == {
        "type": "work",
        "paused": False,
        "rate_limit": 2.5,
        "concurrency": 0,
        "timeout_seconds": 0.0,
        "circuit_breaker": {"failures": 5, "within_seconds": 60.0, "cooldown_seconds": 30.0},
        "open_until": None,
    }
    assert ready.json("limit", "work", "--timeout", "90")["timeout_seconds"] == 90.0
    everything = ready("limit", "--everything", "--timeout", "90")
    assert "can only be limited by --rate" in everything.stderr
    found = ready.json("limit", "work", "--concurrency", "3", "--no-breaker")
    assert (found["rate_limit"], found["concurrency"], found["circuit_breaker"]) == (2.5, 3, None)
    assert ready.json("limit", "--everything", "--rate", "9")["rate_limit"] == 9.0
    assert ready.json("limit")["types"] == {"work": {k: found[k] for k in found if k != "type"}}
    text = ready.ok("limit")
    assert "9 per second" in text
    assert "work  active         2.5        3        90 s" in text


def test_workers(ready: Cli) -> None:
    assert ready("workers").stderr == f"{NOBODY}\n"
    worker_id = worker(capabilities=frozenset({"gpu"}), queues=frozenset({"a", "b"}), host="h")
    (found,) = ready.json("workers")["workers"]
    assert found["worker_id"] == worker_id
    assert (found["status"], found["capacity"], found["current_load"]) == ("active", 10, 0)
    assert (found["capabilities"], found["queues"], found["types"]) == (["gpu"], ["a", "b"], None)
    assert ready.json("drain", worker_id) == {"worker_id": worker_id, "status": "draining"}
    assert f"{worker_id}  draining  0/10" in ready.ok("workers")
    gone = ready("drain", "nobody")
    assert gone.exit_code == 1
    assert "There is no worker nobody" in gone.stderr


def test_workers_that_hold_types_back(ready: Cli) -> None:
    well, unwell = worker(types=frozenset({"fine"})), holding("hang", "freeze")
    found = {each["worker_id"]: each["held_back"] for each in ready.json("workers")["workers"]}
    assert found == {well: [], unwell: ["freeze", "hang"]}
    assert ready.ok("workers").splitlines()[-1] == (
        f"{unwell} holds back freeze, hang: handlers hang."
    )
    assert f"{well} holds" not in ready.ok("workers")
    assert f"{unwell} holds back freeze, hang" in ready.ok("top")
    ready.submit("hang")
    waiting = ready.submit("hang")
    assert "Its workers hold it back: handlers of hang hang." in ready.ok("why", waiting)


def test_migrate(cli: Cli) -> None:
    first = cli.json("migrate")
    assert first["previous_version"] == 0
    assert cli.json("migrate") == {**first, "previous_version": first["version"]}
    assert "up to date" in cli.ok("migrate")


def test_stats(cli: Cli) -> None:
    cli.submit("work", "--priority", "low")
    cli.submit("rest", "--delay", "1h")
    stats = cli.json("stats")
    assert list(stats) == [
        *("queues", "workers", "throughput", "by_status", "by_type", "dlq_size"),
        *("p50_age_seconds", "p95_age_seconds", "recovery", "unserved"),
    ]
    assert {band: found["depth"] for band, found in stats["queues"].items()} == {
        "critical": 0,
        "high": 0,
        "medium": 0,
        "low": 1,
    }
    assert stats["by_type"]["rest"]["scheduled"] == 1
    text = cli.ok("stats")
    assert "1 queued, 1 scheduled" in text
    assert cli.ok("top").startswith("Fairlane sqlite:///fairlane.db")
    top = cli.json("top")
    assert (list(top), list(top["stats"])) == (["stats", "workers"], list(stats))


def test_doctor(ready: Cli) -> None:
    well = ready.json("doctor")
    assert well["ok"] is True
    checks = {each["check"]: each["status"] for each in well["checks"]}
    assert checks["store"] == checks["schema"] == checks["clock"] == "ok"
    assert checks["workers"] == "warning"
    assert all(set(each) == {"check", "status", "message"} for each in well["checks"])

    ready.submit("work")
    unwell = ready("doctor")
    assert unwell.exit_code == 1
    assert "WRONG  workers       No worker is running" in unwell.stdout
    worker()
    assert ready("doctor").exit_code == 0
    ready.ok("pause", "--yes")
    assert "Paused: everything." in ready.ok("doctor")


def test_doctor_finds_tasks_that_no_worker_serves(ready: Cli) -> None:
    worker(types=frozenset({"work"}), lease=10_000)
    for _ in range(2):
        ready.submit("greet", "--queue", "hall", "--capability", "voice")
    assert ready("doctor").exit_code == 0  # they have only come

    async def wait(app: Fairlane) -> None:
        await app.run(app.backend.ops.shift_clock(1_860))

    in_store(wait)
    unwell = ready("doctor", "--json")
    assert unwell.exit_code == 1
    (check,) = [each for each in json.loads(unwell.stdout)["checks"] if each["check"] == "unserved"]
    assert check["status"] == "wrong"
    assert check["message"].startswith("2 tasks wait, the oldest for 31 min")
    assert "no worker serves queue hall, type greet, capability voice" in check["message"]
    ready.ok("pause", "--queue", "hall")
    assert ready("doctor").exit_code == 0


def test_doctor_lists_no_more_lanes_than_a_person_reads() -> None:
    lane = UnservedLane("default", "greet", (), 1, 70.0)
    checks = list(check_unserved([lane] * (UNSERVED + 3)))
    assert len(checks) == UNSERVED + 1
    assert checks[0].message.startswith("1 task waits")
    assert checks[-1].message == "3 more, in 3 lanes."


def test_doctor_finds_types_that_their_workers_hold_back(ready: Cli) -> None:
    ready.submit("hang")
    holding("hang")
    noted = ready.ok("doctor")
    assert "Held back, because their handlers hang: hang (by 1 worker)." in noted

    async def wait(app: Fairlane) -> None:
        await app.run(app.backend.ops.shift_clock(1_860))

    in_store(wait)
    unwell = ready("doctor", "--json")
    assert unwell.exit_code == 1
    (check,) = [each for each in json.loads(unwell.stdout)["checks"] if each["check"] == "unserved"]
    assert check["status"] == "wrong"
    assert check["message"] == (
        "1 task waits, the oldest for 31 min, and every worker that serves queue default, type "
        "hang holds them back: their handler hangs."
    )
    worker()
    assert ready("doctor").exit_code == 0


def test_doctor_names_no_more_types_than_a_person_reads() -> None:
    assert list(check_held_back({})) == []
    (check,) = check_held_back({f"type-{number:02}": 3 for number in range(UNSERVED + 4)})
    assert "type-00 (by 3 workers), type-01" in check.message
    assert "type-19 (by 3 workers) and 4 more. Give" in check.message


def test_doctor_without_a_store(cli: Cli) -> None:
    result = cli("doctor", "--json")
    assert result.exit_code == 1
    assert '"ok": false' in result.stdout
    assert "fairlane migrate" in result.stdout


def test_doctor_on_a_store_that_was_not_prepared(cli: Cli) -> None:
    Path("fairlane.db").touch()
    result = cli("doctor")
    assert result.exit_code == 1
    assert "WRONG  schema" in result.stdout


def test_doctor_sees_tasks_of_the_dead(ready: Cli) -> None:
    async def use(app: Fairlane) -> None:
        await app.stats()
        world = World(app.backend, app.url, {})
        await world.submit()
        await world.claim_one(await world.worker(lease=0.01))
        while not (await app.run(app.backend.ops.workers()))[0].lost:
            pass

    in_store(use)
    checks = {
        each["check"]: each["status"]
        for each in json.loads(ready("doctor", "--json").stdout)["checks"]
    }
    assert checks["overdue"] == "wrong"


def test_trouble_is_shown_on_the_live_screen(ready: Cli) -> None:
    async def use(app: Fairlane) -> Facts:
        return await app.run(app.backend.ops.facts())

    screen = Screen("sqlite:///fairlane.db")
    screen.take(in_store(use))
    screen.miss(StoreUnavailable("gone: redis://:secret@h"))
    text = "\n".join(line.plain for line in screen.lines(80))
    assert "gone: redis://***@h" in text
    assert "critical" in text
    screen.take(in_store(use))
    assert "gone" not in "\n".join(line.plain for line in screen.lines(80))


def test_doctor_sees_clocks_that_differ() -> None:
    """Their clock was read between two looks at ours."""
    assert clock_check(100.5, 100.0, 101.0).status == "ok"
    ahead = clock_check(3701.0, 100.0, 101.0)
    assert ahead.status == "warning"
    assert "60 min ahead" in ahead.message
    assert "100 s behind" in clock_check(0.0, 100.0, 101.0).message
