"""Payloads by reference from the command line, by setting."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from fairlane.core import limits
from fairlane.core.ids import new_id
from tests.cli.kit import Cli, start

LARGE = json.dumps({"text": "x" * limits.PAYLOAD_BYTES})


@pytest.mark.parametrize("where", ["store", "file"])
def test_a_large_payload_is_submitted_and_run(cli: Cli, where: str) -> None:
    blobs = "store" if where == "store" else f"file://{Path('blobs').absolute()}"
    Path("fairlane.toml").write_text(f'blobs = "{blobs}"\n')
    Path("large.json").write_text(LARGE)
    Path("tasks.jsonl").write_text(f'{{"type": "echo", "payload": {LARGE}}}\n')
    cli.ok("migrate")
    task_id = cli.submit("echo", "@large.json")
    assert cli.json("status", task_id)["parameters"]["$blob"]["at"] == where
    assert "1 task submitted" in cli.ok("submit", "--file", "tasks.jsonl")
    worker = start("worker")
    try:
        assert json.loads(cli.ok("submit", "echo", "@large.json", "--wait")) == json.loads(LARGE)
    finally:
        worker.terminate()
        worker.communicate(timeout=60)
    assert Path("blobs").exists() is (where == "file")


def test_a_server_sweeps(cli: Cli) -> None:
    cli.ok("migrate")
    orphan = Path("blobs/aa") / f"{new_id()}.{'a' * 64}"
    orphan.parent.mkdir(parents=True)
    orphan.write_text("left behind")
    os.utime(orphan, (0, 0))
    url = f"file://{Path('blobs').absolute()}"
    server = start("server", "--port", "0", "--blobs", url)
    try:
        until = time.monotonic() + 60
        while orphan.exists() and time.monotonic() < until:
            time.sleep(0.05)
        assert not orphan.exists()
    finally:
        server.terminate()
        server.communicate(timeout=60)


def test_without_the_setting_it_is_refused(cli: Cli) -> None:
    Path("large.json").write_text(LARGE)
    cli.ok("migrate")
    done = cli("submit", "echo", "@large.json")
    assert done.exit_code == 2
    assert "the setting blobs" in done.stderr


@pytest.mark.parametrize(
    "url", ["s3://key:secret@bucket", "file:relative", "/var/blobs", "ftp://x"]
)
def test_a_bad_setting_says_what_is_right_and_does_not_show_it(
    cli: Cli, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLANE_BLOBS", url)
    for command in (["submit", "echo"], ["worker"], ["server", "--port", "0"]):
        done = cli(*command)
        assert done.exit_code == 2
        assert "s3://bucket/prefix" in done.stderr
        assert url not in done.stderr
