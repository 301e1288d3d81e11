"""The audit log: texts made safe, pages and their cursors."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.core import audit, limits
from fairlane.core.audit import (
    Action,
    Audit,
    AuditPage,
    Kept,
    NewAudit,
    checked,
    checked_limit,
    detail_of,
    excess_of,
    subject_of,
)
from fairlane.core.documents import Document
from fairlane.core.errors import BatchTooLarge, InvalidCursor, InvalidInput, InvalidLimit
from fairlane.core.filters import EVERYTHING, new_filter
from fairlane.core.ids import is_id
from fairlane.core.machine import Verb
from fairlane.core.model import moment
from tests.unit.make import NOW, TASK_ID, quick, task_id, torn_texts
from tests.unit.shelf import Shelf, once


def read_back(entry: NewAudit) -> Audit:
    shelf = Shelf()
    shelf.run(audit.record(shelf, [entry, entry]))
    (found,) = shelf.run(audit.audit(shelf, 1)).entries
    return found


class TestEntries:
    def test_are_told_as_they_were_recorded(self) -> None:
        entry = NewAudit.of("ci", Action.LIMIT, "type mail", {"rate": 2.5}, address="10.0.0.1")
        assert is_id(entry.entry_id)
        assert read_back(entry) == Audit(
            entry.entry_id,
            moment(NOW),
            "ci",
            "flow.limit",
            "type mail",
            '{"rate":2.5}',
            "10.0.0.1",
        )
        assert read_back(NewAudit.of("ci", Action.PAUSE)).detail == "{}"

    @quick
    @given(torn_texts, torn_texts, st.dictionaries(torn_texts, torn_texts), torn_texts)
    def test_any_text_can_be_stored(
        self, actor: str, subject: str, detail: dict[str, str], address: str
    ) -> None:
        found = read_back(NewAudit.of(actor, Action.DELETE, subject, detail, address=address))
        assert isinstance(msgspec.json.decode(found.detail), dict)
        msgspec.json.encode(found)

    def test_long_texts_are_cut(self) -> None:
        long = "x" * 10_000
        found = read_back(NewAudit.of(long, Action.PAUSE, long, {"a": long}, address=long))
        assert (len(found.actor), len(found.subject), len(found.address)) == (255, 1_000, 255)
        assert found.subject.endswith("…")

    @pytest.mark.parametrize("text", ["x", '"', "\\", "\x00", "é"])
    def test_a_detail_that_is_cut_is_still_json(self, text: str) -> None:
        found = read_back(NewAudit.of("ci", Action.PAUSE, detail={"a": text * 4_000}))
        assert len(found.detail) <= limits.AUDIT_DETAIL_CHARACTERS
        (cut,) = json.loads(found.detail).values()
        assert cut.startswith('{"a":"')

    def test_a_detail_that_just_fits_is_not_cut(self) -> None:
        fits = {"a": "x" * (limits.AUDIT_DETAIL_CHARACTERS - len('{"a":""}'))}
        assert json.loads(read_back(NewAudit.of("ci", Action.PAUSE, detail=fits)).detail) == fits

    def test_values_that_are_no_json_are_told_as_text(self) -> None:
        odd = {"at": moment(0), "half": "\ud800", "none": float("nan")}
        found = read_back(NewAudit.of("ci", Action.PAUSE, detail=odd))
        assert json.loads(found.detail) == {
            "at": "1970-01-01 00:00:00+00:00",
            "half": "?",
            "none": None,
        }

    def test_the_verbs_of_operators_have_an_action_each(self) -> None:
        for verb in (Verb.CANCEL, Verb.REPLAY, Verb.DELETE):
            assert Action(f"task.{verb}") in Action


class TestWords:
    @pytest.mark.parametrize(
        ("queue", "type", "subject"),
        [("q", None, "queue q"), (None, "t", "type t"), (None, None, "everything")],
    )
    def test_what_was_paused(self, queue: str | None, type: str | None, subject: str) -> None:
        assert subject_of(queue, type) == subject

    def test_which_tasks_were_meant(self) -> None:
        assert detail_of(EVERYTHING) == {}
        asked = new_filter(status=["failed", "dead_letter"], tags={"a": "b"}, worker="w")
        assert detail_of(asked) == {
            "states": ["dead_letter", "failed"],
            "tags": {"a": "b"},
            "worker_id": "w",
        }


class TestBounds:
    def test_a_batch(self) -> None:
        entry = NewAudit.of("ci", Action.PAUSE)
        checked([entry] * limits.BATCH)
        with pytest.raises(BatchTooLarge, match="500 entries at once, not 501"):
            checked([entry] * (limits.BATCH + 1))
        with pytest.raises(InvalidInput, match=r"NewAudit\.of"):
            checked([entry, NewAudit("x", "ci", "flow.pause")])

    def test_a_page(self) -> None:
        assert [checked_limit(limit) for limit in (1, limits.PAGE)] == [1, 1_000]

    @pytest.mark.parametrize("limit", [0, -1, 1_001, 1.0, "1", None, True])
    def test_other_pages_are_refused(self, limit: Any) -> None:
        with pytest.raises(InvalidLimit, match="From 1 to 1,000 entries"):
            checked_limit(limit)


class TestPages:
    def test_a_cursor_while_there_is_more(self) -> None:
        shelf = Shelf()
        assert shelf.run(audit.audit(shelf, 3)) == AuditPage([], None)
        shelf.run(audit.record(shelf, [NewAudit(task_id(n), "ci", "") for n in (1, 2, 3)]))
        page = shelf.run(audit.audit(shelf, 2))
        assert [entry.entry_id for entry in page.entries] == [task_id(3), task_id(2)]
        assert page.next_cursor == "a" + task_id(2).replace("-", "") + f"{NOW:015x}"
        rest = shelf.run(audit.audit(shelf, 2, page.next_cursor))
        assert [entry.entry_id for entry in rest.entries] == [task_id(1)]
        assert rest.next_cursor is None

    def test_each_is_recorded_once(self) -> None:
        shelf = Shelf()
        entries = [NewAudit(task_id(n), "ci", "") for n in (1, 2, 3)]
        shelf.run(audit.record(shelf, []))
        shelf.run(audit.record(shelf, entries[:2]))
        shelf.now += 1
        shelf.run(audit.record(shelf, entries[:2]))
        assert {each.at for each in shelf.of("audit").values()} == {NOW}
        shelf.run(audit.record(shelf, entries))
        assert shelf.of("audit").keys() == {task_id(1), task_id(2), task_id(3)}

    def test_a_page_goes_on_after_an_entry_that_has_gone(self) -> None:
        gone = "a" + TASK_ID.replace("-", "") + f"{NOW + 1:015x}"
        shelf = Shelf()
        shelf.run(audit.record(shelf, [NewAudit(task_id(1), "ci", "")]))
        (found,) = shelf.run(audit.audit(shelf, 2, gone)).entries
        assert found.entry_id == task_id(1)

    def test_forged_cursors(self) -> None:
        shelf = Shelf()
        digits = TASK_ID.replace("-", "")
        forgeries: tuple[Any, ...] = ("", "a", "t" + digits, "a" + digits, TASK_ID, 7)
        for forged in (*forgeries, "a" + digits + "x" * 15, "t" + digits + "0" * 15):
            with pytest.raises(InvalidCursor):
                shelf.run(audit.audit(shelf, 1, forged))


def filled(*actors: str) -> Shelf:
    """A log with an entry of each of these, in that order."""
    shelf = Shelf()
    for n, actor in enumerate(actors):
        shelf.run(audit.record(shelf, [NewAudit(task_id(n), actor, "")]))
        shelf.now += 1
    return shelf


def kept(shelf: Shelf) -> list[str]:
    return [each.actor for each in shelf.run(audit.audit(shelf, 1_000)).entries][::-1]


class TestWhatIsKept:
    @pytest.fixture(autouse=True)
    def few(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "AUDIT_ACTOR_ENTRIES", 3)
        monkeypatch.setattr(limits, "AUDIT_ENTRIES", 4)

    def test_an_actor_takes_its_own_places(self) -> None:
        assert kept(filled("a", "b", "b", "b", "b", "b")) == ["a", "b", "b", "b"]
        shelf = filled("a", "b")
        shelf.run(audit.record(shelf, [NewAudit(task_id(n), "b", "") for n in range(10, 20)]))
        assert shelf.of("audit").keys() == {task_id(n) for n in (0, 17, 18, 19)}

    def test_somebody_else_is_faster(self) -> None:
        shelf = filled("b", "b", "b")
        other = NewAudit(task_id(50), "b", "")
        shelf.interfere = once(lambda: shelf.run(audit.record(shelf, [other])))
        shelf.run(audit.record(shelf, [NewAudit(task_id(51), "b", "")]))
        assert shelf.of("audit").keys() == {task_id(n) for n in (2, 50, 51)}

    def test_a_place_is_taken_at_once(self) -> None:
        shelf = Shelf()
        entry = NewAudit(task_id(50), "b", "")

        def forget_and_take() -> None:
            shelf.of("audit_actor").clear()
            shelf.run(audit.record(shelf, [entry]))

        # Between the write of the counter and that of the entry.
        shelf.interfere = once(lambda: setattr(shelf, "interfere", once(forget_and_take)))
        shelf.run(audit.record(shelf, [NewAudit(task_id(51), "b", "")]))
        assert task_id(51) in shelf.of("audit")

    def test_old_ones_go_first(self) -> None:
        shelf = filled("a", "b", "b", "b", "c")
        shelf.now += int(limits.AUDIT_SECONDS * 1_000_000) - 4
        assert shelf.run(audit.trim_audit(shelf)) == 2
        assert kept(shelf) == ["b", "b", "c"]

    @pytest.mark.parametrize("page", [2, 5, limits.PAGE])
    def test_then_those_of_the_largest(self, monkeypatch: pytest.MonkeyPatch, page: int) -> None:
        shelf = filled("a", "b", "b", "c", "b")
        with monkeypatch.context() as patch:
            patch.setattr(limits, "PAGE", page)
            assert shelf.run(audit.trim_audit(shelf)) == 1
            assert shelf.run(audit.trim_audit(shelf)) == 0
        assert kept(shelf) == ["a", "b", "c", "b"]

    def test_shares(self) -> None:
        documents = [Document(str(n), b"", n) for n in range(6)]
        entries = [Kept(actor, each) for actor, each in zip("aabbbc", documents, strict=True)]
        gone = [[each.id for each in excess_of(entries, count)] for count in (0, 1, 2, 3, 9)]
        assert gone[:3] == [[], ["2"], ["2", "0"]]
        assert gone[3] == ["2", "0", "3"]
        assert sorted(gone[4]) == list("012345")
