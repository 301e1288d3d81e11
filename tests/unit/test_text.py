"""Texts that others give, as parts of ours."""

import pytest

from fairlane.core.text import as_sentence


@pytest.mark.parametrize("text", ["Done.", "Gone!", "Why?", "cut o…"])
def test_a_sentence_stays_as_it_is(text: str) -> None:
    assert as_sentence(text) == text


@pytest.mark.parametrize("text", ["no luck", "a: b,", ""])
def test_what_is_none_gets_a_full_stop(text: str) -> None:
    assert as_sentence(text) == f"{text}."
