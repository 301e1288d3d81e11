"""Definitions of types: what they mean for a submission, and how they are kept."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from fairlane.core import limits
from fairlane.core.definitions import (
    OPTIONS,
    Definition,
    DefinitionPage,
    Published,
    Template,
    definition,
    definition_page,
    definitions,
    publish,
)
from fairlane.core.errors import (
    BatchTooLarge,
    InvalidArguments,
    InvalidCursor,
    InvalidDefinition,
)
from fairlane.core.flow import Op
from fairlane.core.submission import new_task
from tests.unit.shelf import Shelf

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
MAIL = Definition(
    type="mail",
    queue="post",
    priority=8,
    max_retries=9,
    timeout_seconds=30.0,
    tags={"a": "b"},
    parameters=SCHEMA,
)


def test_options_are_arguments_of_new_task() -> None:
    given: dict[str, Any] = {"queue": "q", "priority": 1, "timeout_seconds": None}
    assert Definition(type="t", **given).defaults() == given
    assert set(OPTIONS) <= set(new_task.__kwdefaults__ or {})


def test_what_is_said_wins_over_the_definition() -> None:
    template = Template("mail", MAIL)
    options = template.options({"queue": "other", "tags": {}})
    assert options == {
        "queue": "other",
        "priority": 8,
        "max_retries": 9,
        "timeout_seconds": 30.0,
        "tags": {},
    }
    task = new_task("mail", b'{"n":1}', **options)
    assert (task.queue, task.level, task.max_retries, task.timeout) == ("other", 8, 9, 30.0)


def test_a_type_that_nobody_has_published() -> None:
    template = Template("mail")
    assert template.options({"queue": "q"}) == {"queue": "q"}
    template.check(b'{"anything":[]}')
    form = template.form(None, None)
    assert form is not None
    assert form.filled(b"{}").queue == "default"


def test_a_time_replaces_the_delay_of_the_definition() -> None:
    template = Template("later", Definition(type="later", delay_seconds=60.0))
    at = datetime(2090, 1, 1, tzinfo=UTC)
    assert template.options({"run_at": at}) == {"run_at": at}
    assert template.options({})["delay_seconds"] == 60.0
    both = {"run_at": at, "delay_seconds": 5.0}
    assert template.options(both) == both  # which is refused


def test_forms_are_made_once_for_each_queue_and_priority() -> None:
    template = Template("mail", MAIL)
    form = template.form("q", "low")
    assert form is not None
    assert form is template.form("q", "low")
    assert form is not template.form("q", None)
    assert (form.model.queue, form.model.level, form.model.max_retries) == ("q", 2, 9)
    for number in range(200):
        template.form(f"q{number}", None)
    assert template.form("q", "low") is not form


def test_a_unique_task_has_no_form() -> None:
    assert Template("t", Definition(type="t", unique=True)).form(None, None) is None
    assert Template("t", Definition(type="t", unique=False)).form(None, None) is not None


def test_arguments_that_cannot_fit_are_refused() -> None:
    template = Template("mail", MAIL)
    template.check(b'{"n":1}')
    with pytest.raises(InvalidArguments, match=r"^mail: `n` is missing\.$") as caught:
        template.check(b"{}")
    assert caught.value.parameter == "n"
    template.check(b'{"$blob":{"at":"store","n":5}}')  # nobody has looked into it yet
    template.check(b'{"n":"' + b"x" * limits.CHECKED_BYTES + b'"}')


def test_inputs_stand_in_for_arguments_that_are_missing() -> None:
    template = Template("mail", MAIL)
    template.check(b"{}", {"n"})
    template.check(b'{"$blob":{"at":"file"}}', {"n"})
    Template("other").check(b"{}", {"x"})
    with pytest.raises(InvalidArguments, match="`n` is missing"):
        template.check(b"{}")
    strict = msgspec.structs.replace(MAIL, parameters={**SCHEMA, "additionalProperties": False})
    for payload in (b'{"n":1}', b'{"$blob":{"at":"file"}}'):
        with pytest.raises(InvalidArguments, match="There is no `m`: there is `n`") as caught:
            Template("mail", strict).check(payload, {"m"})
        assert caught.value.parameter == "m"


class Pages:
    """A shelf whose definitions are read in pages of two."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def definition_page(self, cursor: str | None = None, limit: int = 2) -> Op[DefinitionPage]:
        return definition_page(self._shelf, cursor, limit)


def all_of(shelf: Shelf) -> list[Published]:
    return shelf.run(definitions(Pages(shelf)))


def test_all_of_them_are_read_page_by_page() -> None:
    shelf = Shelf()
    types = [f"t{n}" for n in range(5)]
    shelf.run(publish(shelf, [Definition(type=type) for type in types]))
    assert [each.definition.type for each in all_of(shelf)] == types


def test_a_cursor_that_is_none() -> None:
    with pytest.raises(InvalidCursor):
        definition_page(Shelf(), "x:y").flow().send(None)


def test_it_is_kept_for_a_while_and_renewed_when_half_of_it_is_over() -> None:
    shelf = Shelf()
    half = int(limits.DEFINITION_SECONDS * 500_000)
    shelf.run(publish(shelf, [MAIL]))
    stored = shelf.of("definition")["mail"]
    shelf.now += half - 1
    shelf.run(publish(shelf, [MAIL]))
    assert shelf.of("definition")["mail"] == stored
    shelf.now += 2
    shelf.run(publish(shelf, [MAIL]))
    renewed = shelf.of("definition")["mail"]
    assert (renewed.value, renewed.at) == (stored.value, stored.at)
    assert renewed.expires_at == shelf.now + 2 * half
    found = shelf.run(definition(shelf, "mail"))
    assert found is not None
    assert found.definition == MAIL
    shelf.now += 2 * half
    assert shelf.run(definition(shelf, "mail")) is None
    assert all_of(shelf) == []


def test_nothing_is_written_for_nothing() -> None:
    shelf = Shelf()
    shelf.interfere = lambda: pytest.fail("it was written")
    shelf.run(publish(shelf, []))


def test_there_may_be_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "DEFINITIONS", 1)
    shelf = Shelf()
    shelf.run(publish(shelf, [MAIL]))
    other = msgspec.structs.replace(MAIL, type="other")
    with pytest.raises(InvalidDefinition, match="At most 1 definitions are kept"):
        shelf.run(publish(shelf, [other]))
    shelf.now += int(limits.DEFINITION_SECONDS * 1_000_000)
    shelf.run(publish(shelf, [other]))
    assert [each.definition.type for each in all_of(shelf)] == ["other"]


def test_a_stored_definition_of_a_newer_fairlane_can_be_read() -> None:
    shelf = Shelf()
    shelf.run(publish(shelf, [MAIL]))
    stored = shelf.of("definition")["mail"]
    newer = stored.value[:-1] + b',"new":1}'
    shelf.of("definition")["mail"] = msgspec.structs.replace(stored, value=newer)
    assert all_of(shelf)[0].definition == MAIL


def test_what_cannot_be_published() -> None:
    shelf = Shelf()
    with pytest.raises(InvalidDefinition, match="A type has 1 to 255 characters"):
        shelf.run(publish(shelf, [MAIL, Definition(type="no name")]))
    with pytest.raises(BatchTooLarge, match="At most 500 definitions"):
        shelf.run(publish(shelf, [Definition(type=f"t{n}") for n in range(501)]))
    assert all_of(shelf) == []


def test_a_changed_one_takes_the_place_of_the_one_before() -> None:
    shelf = Shelf()
    shelf.run(publish(shelf, [MAIL]))
    shelf.now += 5
    changed = msgspec.structs.replace(MAIL, queue="other")
    shelf.run(publish(shelf, [changed]))
    (found,) = all_of(shelf)
    assert (found.definition, found.version) == (changed, 2)


def test_a_schema_that_is_too_large_is_left_out() -> None:
    shelf = Shelf()
    huge = {"description": "x" * limits.SCHEMA_BYTES}
    shelf.run(publish(shelf, [msgspec.structs.replace(MAIL, parameters=huge)]))
    (found,) = all_of(shelf)
    assert found.definition == msgspec.structs.replace(MAIL, parameters=None)
