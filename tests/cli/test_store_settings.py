"""Settings of the store: the command, the flags, the doctor."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlane.cli.errors import UsageError
from fairlane.cli.parsing import setting_of, setting_text
from fairlane.cli.settings import Settings, resolve
from tests.cli.kit import Cli, write_app
from tests.cli.test_processes import running
from tests.cli.test_server import Site

DAY = 86_400.0


def test_settings_are_shown_and_set(ready: Cli) -> None:
    before = ready.json("settings")
    assert before["version"] == 0
    assert before["aging"]["low_to_medium"] == 600.0
    after = ready.json("settings", "completed=30d", "low-to-medium=5m", "medium_to_high=never")
    assert after["retention"] == {**before["retention"], "completed": 30 * DAY}
    assert after["aging"] == {
        "low_to_medium": 300.0,
        "medium_to_high": None,
        "high_to_critical": None,
    }
    text = ready.ok("settings")
    assert "low_to_medium     5m (default: 10m)\n" in text
    assert "medium_to_high    never (default: 20m)\n" in text
    assert "failed            7d\n" in text
    assert "requeue_spread    0s\n" in text
    (entry,) = ready.json("audit")["entries"]
    assert entry["action"] == "settings.change"
    assert entry["detail"]["completed"] == "30d"
    assert ready.json("settings", "requeue-spread=90")["requeue_spread"] == 90.0
    assert "requeue_spread    90s (default: 0s)\n" in ready.ok("settings")


def test_a_stale_version_changes_nothing(ready: Cli) -> None:
    ready.ok("settings", "completed=2d", "--if-version", "0")
    stale = ready("settings", "completed=3d", "--if-version", "0")
    assert stale.exit_code == 1
    assert "The settings have version 1, not 0" in stale.stderr
    assert ready.json("settings")["retention"]["completed"] == 2 * DAY


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("completed=0", "How long to keep what is completed"),
        ("completed=-1", "A setting is a duration"),
        ("completed=never", "How long to keep what is completed"),
        ("completed", "A setting is given as name=time"),
        ("complete=5d", "There is no setting 'complete'"),
        ("requeue-spread=2h", "requeue_spread, the time over which"),
        ("requeue-spread=never", "requeue_spread, the time over which"),
        ("requeue-spread=-1", "A setting is a duration"),
        ("low-to-medium=soon", "A setting is a duration"),
        ("low-to-medium=99999d", "The aging threshold low_to_medium"),
    ],
)
def test_what_makes_no_sense_is_named(ready: Cli, given: str, named: str) -> None:
    result = ready("settings", "failed=2d", given)
    assert result.exit_code == 2
    assert named in result.stderr
    assert ready.json("settings")["version"] == 0


def test_the_doctor_shows_them(ready: Cli) -> None:
    assert "The defaults. Aging: low_to_medium 10m," in ready.ok("doctor")
    assert "Tasks of dead workers come back at once." in ready.ok("doctor").replace("\n", " ")
    ready.ok("settings", "dead-letter=90d", "requeue-spread=1m")
    (check,) = [each for each in ready.json("doctor")["checks"] if each["check"] == "settings"]
    assert check["status"] == "ok"
    assert check["message"].startswith("Version 1. Aging: ")
    assert "dead_letter 90d" in check["message"]
    assert check["message"].endswith("Tasks of dead workers come back over 1m.")


def test_a_server_sets_its_flags(ready: Cli) -> None:
    flags = ("--retention", "completed=30d", "--aging", "low-to-medium=5m")
    with running("server", "--port", "0", *flags, "--requeue-spread", "30s") as process:
        status, found = Site(process).ask("GET", "/api/v1/settings")
        assert (status, found) == (200, ready.json("settings"))
        assert found["retention"]["completed"] == 30 * DAY
        assert found["aging"]["low_to_medium"] == 300.0
        assert found["requeue_spread"] == 30.0
        assert process.stop() == 0


def test_worker_processes_set_what_the_file_says(ready: Cli) -> None:
    """Over what the application names, and once: the others find it set."""
    write_app()
    app = Path("shop.py").read_text().replace('.db"', '.db", retention=KEPT', 1)
    Path("shop.py").write_text(
        "from fairlane import Retention\n\nKEPT = Retention(completed=5, failed=6)\n" + app
    )
    Path("fairlane.toml").write_text('[retention]\ncompleted = "30d"\njournal = 3600\n')
    with running("worker", "--app", "shop:app", "--processes", "2") as worker:
        worker.wait_for("is ready for", times=2)
        found = ready.json("settings")["retention"]
        assert (found["completed"], found["failed"], found["journal"]) == (30 * DAY, 6.0, 3600.0)
        assert len(ready.json("audit")["entries"]) in {1, 2}  # both may find it unset
        assert worker.stop() == 0


def test_other_commands_do_not_set_them(ready: Cli) -> None:
    Path("fairlane.toml").write_text('retention = {completed = "30d"}\n')
    ready.ok("stats")
    ready.submit("work")
    assert ready.json("settings")["version"] == 0


def test_they_come_from_flags_then_the_environment_then_the_file(tmp_path: Path) -> None:
    (tmp_path / "fairlane.toml").write_text(
        'aging = {low_to_medium = "5m", high_to_critical = "never"}\n[retention]\ncompleted = 60\n'
    )
    found = resolve({}, {}, tmp_path)
    assert found.store_settings == {
        "low_to_medium": 300.0,
        "high_to_critical": None,
        "completed": 60.0,
    }
    environ = {"FAIRLANE_RETENTION": "failed=1h, cancelled=90"}
    found = resolve({"aging": "medium-to-high=1.5m"}, environ, tmp_path)
    assert found.store_settings == {"medium_to_high": 90.0, "failed": 3600.0, "cancelled": 90.0}
    assert resolve({}, found.environment(), tmp_path) == found._replace(store=None)
    for spread, seconds in (("90s", 90.0), ("1.5m", 90.0), ("0", 0.0)):
        found = resolve({"requeue_spread": spread}, {"FAIRLANE_REQUEUE_SPREAD": "5"}, Path("none"))
        assert found.store_settings == {"requeue_spread": seconds}
        assert resolve({}, found.environment(), Path("none")) == found._replace(store=None)
    assert Settings().store_settings == {}


@pytest.mark.parametrize(
    ("name", "value", "named"),
    [
        ("aging", "completed=5m", "FAIRLANE_AGING has low_to_medium, medium_to_high"),
        ("retention", "low_to_medium=5m", "FAIRLANE_RETENTION has completed, failed"),
        ("retention", "completed=0", "FAIRLANE_RETENTION: How long to keep what is completed"),
        ("retention", "completed", "FAIRLANE_RETENTION: A setting is given as name=time"),
        ("aging", "low_to_medium=x", "FAIRLANE_AGING: A setting is a duration"),
        ("requeue_spread", "soon", "FAIRLANE_REQUEUE_SPREAD: A setting is a duration"),
        ("requeue_spread", "-1", "FAIRLANE_REQUEUE_SPREAD: A setting is a duration"),
        ("requeue_spread", "never", "FAIRLANE_REQUEUE_SPREAD: requeue_spread, the time"),
        ("requeue_spread", "2h", "FAIRLANE_REQUEUE_SPREAD: requeue_spread, the time"),
    ],
)
def test_mistakes_in_the_environment(tmp_path: Path, name: str, value: str, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        resolve({}, {f"FAIRLANE_{name.upper()}": value}, tmp_path)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("retention = 5", "retention in fairlane.toml lists settings like completed=10m"),
        ("retention = {completed = true}", "A setting is a duration"),
        ("[aging]\nlow_to_medium = -1", "The aging threshold low_to_medium"),
        ("[aging]\nlow_to_medium = nan", "The aging threshold low_to_medium"),
        ("requeue_spread = -1", "requeue_spread in fairlane.toml: requeue_spread, the time"),
        ("requeue_spread = nan", "requeue_spread in fairlane.toml: requeue_spread, the time"),
        ("requeue_spread = true", "requeue_spread in fairlane.toml: A setting is a duration"),
    ],
)
def test_mistakes_in_the_file(tmp_path: Path, text: str, named: str) -> None:
    (tmp_path / "fairlane.toml").write_text(text)
    with pytest.raises(UsageError, match=named):
        resolve({}, {}, tmp_path)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((None, "never"), (0.0, "0s"), (0.5, "0.5s"), (90.0, "90s"), (600.0, "10m")),
        *((5400.0, "90m"), (7200.0, "2h"), (DAY, "1d"), (30 * DAY, "30d"), (1.5 * DAY, "36h")),
        (1234.5678, "1234.5678s"),
    ],
)
def test_a_setting_is_written_as_it_is_read(seconds: float | None, text: str) -> None:
    assert setting_text(seconds) == text
    assert setting_of(text) == seconds
