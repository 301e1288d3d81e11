"""Definitions on the command line: on a store of one's own, and on a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fairlane import engines
from fairlane.core.backend import Backend
from fairlane.core.definitions import Definition
from tests.cli.kit import Cli
from tests.fixtures.remote import remote


@pytest.fixture
def backend(ready: Cli) -> Iterator[Backend]:
    backend = engines.open(f"sqlite:///{Path.cwd() / 'fairlane.db'}")
    yield backend
    backend.driver.close()


@pytest.fixture(params=["file", "server"])
def at(
    request: pytest.FixtureRequest, ready: Cli, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Cli]:
    """The command line, whose store is a file, or a server over it."""
    with ExitStack() as stack:
        if request.param == "server":
            monkeypatch.setenv("FAIRLANE_STORE", stack.enter_context(remote(backend)))
        yield ready


def test_they_are_listed_and_dropped(at: Cli, backend: Backend) -> None:
    empty = at("definition", "list")
    assert (empty.exit_code, empty.stdout) == (0, "")
    assert "No definitions" in empty.stderr
    backend.run_sync(backend.ops.publish([Definition(type="greet", queue="evil")]))
    backend.run_sync(backend.ops.publish([Definition(type="mail", source="shop.mail, line 3")]))
    lines = at.ok("definition", "list", "--utc").splitlines()
    assert lines[0].split()[:3] == ["type", "queue", "version"]
    assert [line.split()[0] for line in lines[1:]] == ["greet", "mail"]
    assert "evil" in lines[1]
    assert "line 3" in lines[2]
    found = at.json("definition", "list")["definitions"]
    assert [each["type"] for each in found] == ["greet", "mail"]

    assert at.ok("definition", "drop", "greet") == "The definition of greet is gone.\n"
    assert [each["type"] for each in at.json("definition", "list")["definitions"]] == ["mail"]
    entry = at.json("audit", "--store", "sqlite:///fairlane.db")["entries"][0]
    assert (entry["action"], entry["subject"]) == ("definition.drop", "greet")
    for wrong, words in (("greet", "no definition of greet"), ("no name", "A type has")):
        refused = at("definition", "drop", wrong)
        assert refused.exit_code in {1, 2}
        assert words in refused.stderr


def test_many_are_listed_in_pages(at: Cli, backend: Backend) -> None:
    many = [Definition(type=f"t{number:03}") for number in range(101)]
    backend.run_sync(backend.ops.publish(many))
    first = at("definition", "list")
    assert len(first.stdout.splitlines()) == 101
    cursor = first.stderr.rpartition("--cursor ")[2].strip()
    assert at.ok("definition", "list", "--cursor", cursor).splitlines()[1].split()[0] == "t100"
