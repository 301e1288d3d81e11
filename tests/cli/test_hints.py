"""What `up` and `worker` say to the person in front of them is right, and can be carried out."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fairlane.cli import hints
from tests.cli.kit import Cli, write_app
from tests.cli.test_processes import running

pytestmark = pytest.mark.timeout(110)


def test_the_command_that_up_prints_works_in_another_folder(
    ready: Cli, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    with running("up", "--port", "0") as process:
        process.wait_for("Open it in a browser")
        (command,) = re.findall("`(.*)`", process.said)
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=elsewhere,
            env={"PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert "workers" in done.stdout


@pytest.mark.parametrize(
    ("called", "on_path", "shown"),
    [
        ("/opt/venv/bin/fairlane", True, "fairlane"),
        ("/opt/venv/bin/fairlane", False, "/opt/venv/bin/fairlane"),
        ("/opt/my venv/bin/fairlane", False, "'/opt/my venv/bin/fairlane'"),
        ("/x/fairlane/__main__.py", True, f"{sys.executable} -m fairlane"),
    ],
)
def test_how_to_call_it_again(
    monkeypatch: pytest.MonkeyPatch, called: str, on_path: bool, shown: str
) -> None:
    monkeypatch.setattr(sys, "argv", [called, "up"])
    monkeypatch.setattr("shutil.which", lambda _: called if on_path else "/usr/bin/fairlane")
    assert hints.fairlane_command() == shown


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:///tasks.db", "--store 'sqlite:///{cwd}/tasks.db'"),
        ("sqlite:////var/tasks.db", "--store sqlite:////var/tasks.db"),
        ("redis://127.0.0.1/0", "--store redis://127.0.0.1/0"),
        ("postgresql://ada:secret@host/db", None),
        ("sqlite://", None),
        ("sqlite:///:memory:", None),
    ],
)
def test_the_store_is_named_unless_that_would_tell_a_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, shown: str | None
) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    command = hints.watch_command(url)
    if shown is None:
        assert command is None
    else:
        assert command is not None
        cwd = str(folder).replace(" ", "%20")
        assert command.endswith(shown.format(cwd=cwd).replace("'", ""))


def test_under_make_the_port_is_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIRLANE_PORT_ADVICE", raising=False)
    assert hints.port_advice(8000) == "--port 8001, or --port 0 for any free one"
    assert hints.port_advice(65_535).startswith("--port 0")
    monkeypatch.setenv("FAIRLANE_PORT_ADVICE", "make up PORT=")
    assert hints.port_advice(8000) == "make up PORT=8001"


def test_what_a_worker_waits_for(ready: Cli) -> None:
    write_app()
    task_id = ready.submit("hang")
    with running("worker", "--app", "shop:app", "--grace", "50") as worker:
        worker.wait_for("is ready for")
        while ready.json("status", task_id)["progress"] is None:
            assert worker.process.poll() is None
        worker.process.send_signal(signal.SIGINT)
        worker.wait_for(
            "Stopping. 1 task still runs, for up to 50 s: 1 hang. Ctrl-C again stops at once, and "
            "running tasks go back to their queues."
        )
        worker.process.send_signal(signal.SIGINT)
        worker.wait_for("Stopping at once: running tasks go back to their queues.")
        assert worker.process.wait(60) == 0
    assert ready.status(task_id) == "queued"


def test_a_worker_that_waits_for_nothing(ready: Cli) -> None:
    with running("worker") as worker:
        worker.wait_for("is ready for")
        assert worker.stop() == 0
        assert worker.said.endswith("Stopping.\n")
