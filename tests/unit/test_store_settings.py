"""Settings of a store: names, values, and how they are stored."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from fairlane.core.documents import Document, Written
from fairlane.core.errors import (
    InvalidInput,
    InvalidRetention,
    InvalidSetting,
    SettingsConflict,
    StoreBusy,
)
from fairlane.core.flow import Flow, perform
from fairlane.core.priority import Aging
from fairlane.core.retention import Retention
from fairlane.core.store_settings import (
    DEFAULT,
    NAMES,
    StoreSettings,
    aging_in,
    change_settings,
    changes_to,
    settings,
)


def test_the_names_are_those_of_aging_and_retention_and_one_more() -> None:
    assert (
        *("low_to_medium", "medium_to_high", "high_to_critical"),
        *("completed", "failed", "cancelled", "dead_letter", "workers", "journal"),
        "requeue_spread",
    ) == NAMES
    assert tuple(DEFAULT.values()) == NAMES


def test_a_change_leaves_the_rest() -> None:
    changed = DEFAULT.with_changes({"medium_to_high": None, "failed": 5.0})
    assert changed == StoreSettings(Aging(medium_to_high=None), Retention(failed=5.0))
    assert changed.with_changes({}) == changed


@pytest.mark.parametrize("name", NAMES[3:9])
def test_nothing_is_deleted_at_once(name: str) -> None:
    assert DEFAULT.with_changes({name: 1.0}).values()[name] == 1.0
    with pytest.raises(InvalidRetention, match=name):
        DEFAULT.with_changes({name: 0.0})


@pytest.mark.parametrize("seconds", [0, 0.0, 0.5, 30, 3600])
def test_tasks_of_dead_workers_come_back_over_up_to_an_hour(seconds: float) -> None:
    assert DEFAULT.requeue_spread == 0
    changed = DEFAULT.with_changes({"requeue_spread": seconds})
    assert changed.requeue_spread == seconds
    assert changed.with_changes({"failed": 5.0}).values()["requeue_spread"] == seconds


@pytest.mark.parametrize(
    "seconds", [-1, -0.001, 3600.5, math.nan, math.inf, None, True, "30", b"30", [30]]
)
def test_no_other_spread_is_taken(seconds: Any) -> None:
    with pytest.raises(
        InvalidSetting, match=r"^requeue_spread, .* from 0 \(at once\) to 3,600\. Got "
    ):
        DEFAULT.with_changes({"requeue_spread": seconds})


def test_unknown_names_are_listed_beside_those_there_are() -> None:
    with pytest.raises(
        InvalidSetting,
        match=r"no setting 'a', 'b': .* are low_to_medium, .*journal, requeue_spread\.",
    ):
        DEFAULT.with_changes({"b": 1.0, "completed": 5.0, "a": None})


def test_what_an_application_names_is_set_as_a_whole() -> None:
    assert changes_to(None, None) == {}
    assert changes_to(Aging(5.0), None) == {
        "low_to_medium": 5.0,
        "medium_to_high": 1200.0,
        "high_to_critical": None,
    }
    assert changes_to(None, None, 30) == {"requeue_spread": 30}
    assert set(changes_to(Aging(), Retention(), 0)) == set(NAMES)
    with pytest.raises(InvalidInput):
        changes_to(None, Retention(completed=0))
    with pytest.raises(InvalidSetting):
        changes_to(None, None, -1)


def test_what_is_stored_by_a_newer_fairlane_can_be_read() -> None:
    assert aging_in(None) == Aging()
    assert aging_in(b'{"low_to_medium":7,"completed":9,"new":1}') == Aging(low_to_medium=7.0)


class Fake:
    """A store with one document; `faster` writes it first, as often as it says."""

    def __init__(self, stored: Document | None = None, faster: int = 0) -> None:
        self.stored = stored
        self.faster = faster

    def read_documents(
        self, kind: str, ids: Sequence[str]
    ) -> Flow[tuple[int, list[Document | None]]]:
        yield from ()
        assert (kind, list(ids)) == ("settings", ["settings"])
        return 1_000, [self.stored]

    def write_settings(self, document: Document) -> Flow[Written]:
        yield from ()
        if self.faster:
            self.faster -= 1
            return Written.OVERTAKEN
        self.stored = document
        return Written.DONE


def run(op: Any) -> Any:
    return perform(op.flow(), lambda _: None)


def test_only_what_was_set_is_stored() -> None:
    store = Fake()
    assert run(settings(store)) == DEFAULT  # type: ignore[arg-type]
    answer = run(change_settings(store, {"failed": 5.0, "high_to_critical": None}))  # type: ignore[arg-type]
    assert answer == StoreSettings(retention=Retention(failed=5.0), version=1)
    assert store.stored == Document(
        "settings", b'{"failed":5.0,"high_to_critical":null}', 1_000, version=0
    )


def test_a_spread_is_stored_and_read() -> None:
    store = Fake(Document("settings", b'{"failed":5.0}', 7, version=3))
    answer = run(change_settings(store, {"requeue_spread": 30.0}))  # type: ignore[arg-type]
    assert answer == StoreSettings(retention=Retention(failed=5.0), requeue_spread=30.0, version=4)
    assert run(settings(Fake(Document("settings", b'{"requeue_spread":30.0}', 7, version=4)))) == (  # type: ignore[arg-type]
        StoreSettings(requeue_spread=30.0, version=4)
    )


def test_a_value_of_a_newer_fairlane_stays_stored() -> None:
    store = Fake(Document("settings", b'{"new":1.0,"failed":5.0}', 7, version=3))
    answer = run(change_settings(store, {"failed": 6.0}, version=3))  # type: ignore[arg-type]
    assert answer == StoreSettings(retention=Retention(failed=6.0), version=4)
    assert store.stored == Document("settings", b'{"new":1.0,"failed":6.0}', 1_000, version=3)


def test_it_begins_again_when_another_process_was_faster() -> None:
    store = Fake(faster=3)
    assert run(change_settings(store, {"failed": 6.0})).version == 1  # type: ignore[arg-type]
    with pytest.raises(StoreBusy):
        run(change_settings(Fake(faster=1_000), {"failed": 6.0}))  # type: ignore[arg-type]


def test_a_change_of_what_another_process_has_changed_is_refused() -> None:
    store = Fake(Document("settings", b'{"failed":5.0}', 7, version=3))
    with pytest.raises(SettingsConflict, match="have version 3, not 2: another process"):
        run(change_settings(store, {"failed": 6.0}, version=2))  # type: ignore[arg-type]
    repeated = run(change_settings(store, {"failed": 5.0}, version=2))  # type: ignore[arg-type]
    assert repeated.version == 3
