"""Times, columns, escapes."""

from datetime import UTC, datetime, timedelta

import pytest

from fairlane.cli.errors import scrubbed
from fairlane.cli.escapes import printable
from fairlane.cli.render import Column, span, table, when
from tests.cli.kit import Cli

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (None, "–"),
        (0.0123, "12 ms"),
        (0.9996, "1.0 s"),
        (9.94, "9.9 s"),
        (59.6, "60 s"),
        (125, "2 min"),
        (7100, "118 min"),
        (7200, "2 h"),
        (86_400 * 3, "3 d"),
        (86_400 * 3000, "3,000 d"),
    ],
)
def test_spans(seconds: float | None, told: str) -> None:
    assert span(seconds) == told


def test_moments() -> None:
    assert when(NOW - timedelta(seconds=30), now=NOW) == "30 s ago"
    assert when(NOW + timedelta(hours=3), now=NOW) == "in 3 h"
    assert when(NOW, now=NOW) == "now"
    assert when(NOW, utc=True) == "2026-01-31 12:00:00Z"
    assert when(None) == "–"


def test_tables_fit() -> None:
    columns = (Column("id"), Column("name", least=5), Column("n", right=True), Column("x", wide=40))
    rows = [("1234567890", "a long name with 語 in it", "7", "x")]
    wide = [line.plain for line in table(columns, rows, 80)]
    assert wide == [
        "id          name                       n  x",
        "1234567890  a long name with 語 in it  7  x",
    ]
    narrow = [line.plain for line in table(columns, rows, 24)]
    assert narrow == ["id          name       n", "1234567890  a long n…  7"]
    assert max(map(len, (line.plain for line in table(columns, rows, 10)))) < 24


def test_what_users_typed_is_harmless() -> None:
    assert printable("a\x1b[2J\x9b\r\n\u202eb\ud800é語") == (
        "a\\x1b[2J\\x9b\\r\\n\\u202eb\\ud800é語"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("at redis://:p@ss@h:1/0 now", "at redis://***@h:1/0 now"),
        ("'postgresql://u:p@h/db?password=x&a=b'", "'postgresql://***@h/db?password=***&a=b'"),
        ("sqlite:///a.db", "sqlite:///a.db"),
        ("mail me@example.com", "mail me@example.com"),
        ("a@b://c", "a@b://c"),
        ("://u:p@h", "://u:p@h"),
        ("://x://u:p@h", "://x://***@h"),
        ("http://a,http://u:p@h", "http://***@h"),
        ("http://a 'http://u:p@h'", "http://a 'http://***@h'"),
    ],
)
def test_secrets_are_scrubbed(text: str, shown: str) -> None:
    assert scrubbed(text) == shown


@pytest.mark.parametrize("width", [60, 100])
@pytest.mark.parametrize(
    "command", ["list", "stats", "doctor", "workers", "limit", "top", "events"]
)
def test_nothing_is_wider_than_the_terminal(
    cli: Cli, command: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    cli.submit("a-type-with-a-rather-long-name-that-has-to-give-way", "--queue", "quite-long-too")
    cli.ok("limit", "a-type-with-a-rather-long-name-that-has-to-give-way", "--rate", "1")
    monkeypatch.setenv("COLUMNS", str(width))
    lines = cli(command).stdout.splitlines()
    assert [line for line in lines if len(line) > width] == []
    assert all("\x1b" not in line for line in lines)
