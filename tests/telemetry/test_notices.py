"""Lines that would fill the log are said once in a while."""

import logging

import pytest

from fairlane.telemetry.notices import SECONDS, Notices


def test_a_line_is_repeated_after_a_while_and_counts_what_was_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = 0.0
    notices = Notices(logging.getLogger("fairlane.test"), lambda: now)
    for _ in range(1_000):
        notices.error("It is dark.")
    notices.error("It is cold.")
    now += SECONDS
    for _ in range(2):
        notices.error("It is dark.")
    now += SECONDS
    notices.error("It is cold.")
    assert [record.message for record in caplog.records] == [
        "It is dark.",
        "It is cold.",
        "It is dark. This happened 999 more times since it was last logged.",
        "It is cold.",
    ]


def test_it_does_not_remember_without_bound(caplog: pytest.LogCaptureFixture) -> None:
    notices = Notices(logging.getLogger("fairlane.test"))
    for number in range(1_000):
        notices.error(f"It is {number}.")
    assert len(caplog.records) == 1_000
    assert len(notices._known) <= 100
