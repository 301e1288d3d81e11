"""Flags, then the environment, then the file."""

from pathlib import Path

import pytest

from fairlane.cli.errors import UsageError
from fairlane.cli.settings import DEFAULT_STORE, Settings, resolve
from fairlane.core.breaker import Breaker
from tests.cli.kit import Cli


def test_nothing_said(tmp_path: Path) -> None:
    assert resolve({}, {}, tmp_path) == Settings()
    assert Settings().store_url == DEFAULT_STORE


def test_the_nearer_one_wins(tmp_path: Path) -> None:
    (tmp_path / "fairlane.toml").write_text(
        'store = "sqlite:///file.db"\nqueues = ["x", "y"]\nconcurrency = 3\napp = "a:b"\n'
    )
    environ = {"FAIRLANE_STORE": "sqlite:///env.db", "FAIRLANE_CONCURRENCY": "4"}
    found = resolve({"concurrency": 5, "store": None}, environ, tmp_path)
    assert found == Settings(
        store="sqlite:///env.db", app="a:b", concurrency=5, queues=frozenset({"x", "y"})
    )


def test_a_file_in_the_folder_gets_no_token_of_the_environment(tmp_path: Path) -> None:
    """Somebody else may have written the file: it names where the token would be sent."""
    token = "fl_" + "x" * 43
    file = tmp_path / "fairlane.toml"
    file.write_text('store = "https://evil.example"\n')
    for name, value in {"FAIRLANE_TOKEN": token, "FAIRLANE_TOKEN_FILE": "t"}.items():
        with pytest.raises(UsageError, match=r"not sent to the store that fairlane\.toml names"):
            resolve({}, {name: value}, tmp_path)
        mine = {"FAIRLANE_STORE": "https://queue.example", name: value}
        assert resolve({}, mine, tmp_path).store == "https://queue.example"
        flag = {"store": "https://queue.example"}
        assert resolve(flag, {name: value}, tmp_path).store == "https://queue.example"
    assert resolve({}, {}, tmp_path).server_token is None
    file.write_text(f'store = "https://evil.example"\ntoken = "{token}"\n')
    assert resolve({}, {}, tmp_path).server_token == token
    file.write_text('store = "sqlite:///file.db"\n')
    assert resolve({}, {"FAIRLANE_TOKEN": token}, tmp_path).server_token is None


def test_a_file_in_the_folder_gets_no_other_file(tmp_path: Path) -> None:
    """Of a token file, it has only the name, which may be that of any file."""
    token = "fl_" + "x" * 43
    (tmp_path / "token").write_text(f"{token}\n")
    named = f'token_file = "{tmp_path / "token"}"\n'
    file = tmp_path / "fairlane.toml"
    file.write_text(f'store = "https://evil.example"\n{named}')
    with pytest.raises(UsageError, match="--store or FAIRLANE_STORE") as refused:
        resolve({}, {}, tmp_path)
    assert "token_file" not in refused.value.message
    mine = {"FAIRLANE_STORE": "https://queue.example"}
    assert resolve({}, mine, tmp_path).server_token == token
    file.write_text(f'store = "https://evil.example"\ntoken = "{token}"\n{named}')
    with pytest.raises(UsageError, match=r"not sent to the store that fairlane\.toml names"):
        resolve({}, {}, tmp_path)


@pytest.mark.parametrize("text", ["root:x:0:0:root:/root:/bin/sh", "fl_", "fl_" + "x" * 43 + " x"])
def test_what_is_no_token_is_not_sent(tmp_path: Path, text: str) -> None:
    (tmp_path / "token").write_text(text)
    given = {"FAIRLANE_STORE": "https://a.example", "FAIRLANE_TOKEN_FILE": str(tmp_path / "token")}
    with pytest.raises(UsageError, match="is a token") as refused:
        _ = resolve({}, given, tmp_path).server_token
    assert text not in refused.value.message
    with pytest.raises(UsageError, match="FAIRLANE_TOKEN is a token"):
        resolve({}, {"FAIRLANE_TOKEN": text}, tmp_path)


def test_children_get_the_same(tmp_path: Path) -> None:
    names = frozenset({"q", "p"}), frozenset({"gpu"})
    settings = Settings(
        "redis://h",
        "a:b",
        7,
        2,
        *names,
        lease=12.5,
        grace=3.0,
        tasks_per_child=5,
        breaker=Breaker(5, 60.0, 0.5),
        health_port=81,
        name="mail",
    )
    assert resolve({}, settings.environment(), tmp_path) == settings


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('stor = "x"\ncolour = 1', "colour, stor"),
        ("store = 1", "store in fairlane.toml is a text"),
        ("concurrency = 0", "whole number, 1 or more"),
        ("concurrency = true", "whole number, 1 or more"),
        ("queues = []", "lists names"),
        ("lease = true", "lease in fairlane.toml is a number of seconds"),
        ('grace = "long"', "grace in fairlane.toml is a number of seconds"),
        ('queues = ["a b"]', "lists names"),
        ("queues = 3", "lists names"),
        ("store =", "not valid TOML"),
    ],
)
def test_mistakes_in_the_file_are_named(tmp_path: Path, text: str, named: str) -> None:
    (tmp_path / "fairlane.toml").write_text(text)
    with pytest.raises(UsageError) as caught:
        resolve({}, {}, tmp_path)
    assert named in caught.value.format_message()


def test_mistakes_in_the_environment_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"FAIRLANE_CONCURRENCY is a whole number"):
        resolve({}, {"FAIRLANE_CONCURRENCY": "many"}, tmp_path)


def test_commands_go_by_them(cli: Cli) -> None:
    Path("fairlane.toml").write_text('store = "sqlite:///here.db"')
    cli.ok("migrate")
    assert Path("here.db").exists()
    assert cli.json("list", env={"FAIRLANE_STORE": "sqlite:///here.db"})["tasks"] == []
    assert cli("list", env={"FAIRLANE_STORE": "sqlite:///there.db"}).exit_code == 1
    assert not Path("there.db").exists()
