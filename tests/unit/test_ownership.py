"""Whose tasks they are: what bounds admit, how filters and submissions are brought within them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from fairlane.core import limits
from fairlane.core.errors import InvalidTags, OutOfBounds
from fairlane.core.filters import EVERYTHING, Filter
from fairlane.core.model import PLAIN, Spec
from fairlane.core.ownership import Bounds, shown_key, stamped
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.core.uniqueness import Unique
from tests.unit.make import TASK_ID, task_id
from tests.unit.make import stored as stored_task

OWN = Bounds("acme", own=True)
QUEUES = Bounds("acme", queues=frozenset({"a", "b"}))
TAGS = Bounds("acme", tags={"team": "blue"})
ALL = Bounds("acme", own=True, queues=frozenset({"a"}), tags={"team": "blue", "x": ""})


class TestStamped:
    def test_a_plain_task(self) -> None:
        task = new_task("t", idempotency_key="k")
        owned = stamped(task, "acme")
        assert owned == replace(task, spec=Spec(owner="acme"))
        assert task.spec is PLAIN

    def test_the_rest_of_a_task_stays(self) -> None:
        task = new_task("t", tags={"a": "b"}, timeout_seconds=5)
        assert stamped(task, "acme").spec == replace(task.spec, owner="acme")


class TestAdmits:
    @pytest.mark.parametrize(
        ("bounds", "values", "admitted"),
        [
            (OWN, {"owner": "acme"}, True),
            (OWN, {"owner": "Acme"}, False),
            (OWN, {"owner": None}, False),
            (QUEUES, {"queue": "b", "owner": "other"}, True),
            (QUEUES, {"queue": "c", "owner": "acme"}, False),
            (TAGS, {"tags": {"team": "blue", "n": "1"}}, True),
            (TAGS, {"tags": {"team": "red"}}, False),
            (TAGS, {"tags": {}}, False),
            (ALL, {"owner": "acme", "queue": "a", "tags": {"team": "blue", "x": ""}}, True),
            (ALL, {"owner": "acme", "queue": "a", "tags": {"team": "blue"}}, False),
            (ALL, {"owner": "acme", "queue": "b", "tags": {"team": "blue", "x": ""}}, False),
            (ALL, {"owner": "other", "queue": "a", "tags": {"team": "blue", "x": ""}}, False),
        ],
    )
    def test_tasks(self, bounds: Bounds, values: dict[str, Any], admitted: bool) -> None:
        assert bounds.admits(stored_task(**values)) is admitted

    @pytest.mark.parametrize("bounds", [OWN, QUEUES, TAGS, ALL])
    def test_what_they_have_made(self, bounds: Bounds) -> None:
        task = new_task("t", queue="a", idempotency_key="k")
        owned = bounds.own_task(task)
        assert bounds.admits_new(owned)
        assert not bounds.admits_new(task)
        assert not bounds.admits_new(replace(owned, idempotency_key="k"))
        assert not bounds.admits_new(replace(owned, idempotency_key="other\x1fk"))
        assert not bounds.admits_new(replace(owned, spec=replace(owned.spec, owner="other")))
        assert bounds.admits_new(replace(owned, idempotency_key=None))

    def test_not_what_was_changed_since(self) -> None:
        owned = ALL.own_task(new_task("t", queue="a"))
        assert not ALL.admits_new(replace(owned, queue="b"))
        assert not ALL.admits_new(replace(owned, spec=replace(owned.spec, tags={})))


class TestNarrow:
    @pytest.mark.parametrize(
        ("bounds", "filter", "narrowed"),
        [
            (OWN, EVERYTHING, Filter(owner="acme")),
            (OWN, Filter(owner="acme", queues=frozenset("z")), None),
            (QUEUES, EVERYTHING, Filter(queues=frozenset("ab"))),
            (QUEUES, Filter(queues=frozenset("b"), owner="other"), None),
            (TAGS, EVERYTHING, Filter(tags={"team": "blue"})),
            (TAGS, Filter(tags={"team": "blue"}), None),
            (TAGS, Filter(tags={"n": "1"}), Filter(tags={"n": "1", "team": "blue"})),
            (
                ALL,
                Filter(states=frozenset({State.QUEUED})),
                Filter(
                    states=frozenset({State.QUEUED}),
                    owner="acme",
                    queues=frozenset("a"),
                    tags={"team": "blue", "x": ""},
                ),
            ),
        ],
    )
    def test_filters(self, bounds: Bounds, filter: Filter, narrowed: Filter | None) -> None:
        assert bounds.narrow(filter) == (filter if narrowed is None else narrowed)

    @pytest.mark.parametrize(
        ("bounds", "filter", "said"),
        [
            (
                OWN,
                Filter(owner="b"),
                "This token is bound to the tasks of 'acme': the tasks of 'b' are not among them.",
            ),
            (
                QUEUES,
                Filter(queues=frozenset("ac")),
                "This token is bound to tasks in the queues a, b: the queue 'c' is not among them.",
            ),
            (
                TAGS,
                Filter(tags={"team": "red"}),
                (
                    "This token is bound to tasks with the tag 'team': 'blue': 'red' is another "
                    "value of 'team'."
                ),
            ),
            (
                ALL,
                Filter(queues=frozenset("b")),
                (
                    "This token is bound to the tasks of 'acme' in the queue a with the tags "
                    "'team': 'blue', 'x': '': the queue 'b' is not among them."
                ),
            ),
        ],
    )
    def test_what_is_outside_is_refused(self, bounds: Bounds, filter: Filter, said: str) -> None:
        with pytest.raises(OutOfBounds) as caught:
            bounds.narrow(filter)
        assert caught.value.message == said

    def test_queues(self) -> None:
        assert OWN.narrow_queues(None) is None
        assert OWN.narrow_queues(frozenset("z")) == frozenset("z")
        assert QUEUES.narrow_queues(None) == frozenset("ab")
        assert QUEUES.narrow_queues(frozenset("a")) == frozenset("a")


class TestOwnTask:
    def test_it_gets_owner_and_tags(self) -> None:
        owned = ALL.own_task(new_task("t", queue="a", tags={"n": "1", "team": "blue"}))
        assert owned.spec == Spec(owner="acme", tags={"n": "1", "team": "blue", "x": ""})

    def test_a_task_for_another_queue_is_refused(self) -> None:
        with pytest.raises(OutOfBounds, match="the queue 'default' is not among them"):
            QUEUES.own_task(new_task("t"))

    def test_another_value_of_a_tag_is_refused(self) -> None:
        with pytest.raises(OutOfBounds, match="'red' is another value of 'team'"):
            TAGS.own_task(new_task("t", tags={"team": "red"}))

    def test_there_is_room_for_so_many_tags(self) -> None:
        tags = {str(number): "" for number in range(limits.TAGS)}
        TAGS.own_task(new_task("t", tags=dict(list(tags.items())[1:])))
        with pytest.raises(InvalidTags, match="this token adds 1"):
            TAGS.own_task(new_task("t", tags=tags))

    def test_an_idempotency_key_belongs_to_the_subject(self) -> None:
        task = new_task("t", idempotency_key="k 1")
        owned = OWN.own_task(task)
        assert owned.idempotency_key == "acme\x1fk 1"
        assert shown_key(owned.idempotency_key) == "k 1"
        assert owned.fingerprint == task.fingerprint
        assert OWN.own_task(new_task("t")).idempotency_key is None

    @pytest.mark.parametrize("key", [None, "k"])
    def test_a_key_of_nobody_is_shown_as_it_is(self, key: str | None) -> None:
        assert shown_key(key) == key

    def test_a_unique_key_belongs_to_the_subject(self) -> None:
        task = new_task("t", {"n": 1}, unique=Unique(period=5.0))
        mine, again = OWN.own_task(task).unique, QUEUES.own_task(replace(task, queue="a")).unique
        other = Bounds("other", own=True).own_task(task).unique
        assert task.unique is not None
        assert mine is not None
        assert other is not None
        assert mine == again == replace(task.unique, key=mine.key)
        assert len({task.unique.key, mine.key, other.key}) == 3
        assert len(mine.key) == len(task.unique.key)

    def test_everything_else_stays(self) -> None:
        task = new_task("t", depends_on=[task_id(1)], task_id=TASK_ID, priority=9, delay_seconds=5)
        owned = OWN.own_task(task)
        assert owned == replace(task, spec=replace(task.spec, owner="acme"))
