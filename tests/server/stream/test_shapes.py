"""The journal without a server: types, cursors, filters, and what waits for a client."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlane.core.ids import new_id
from fairlane.core.journal import place_of
from fairlane.core.machine import TRANSITIONS
from fairlane.core.model import Event, moment
from fairlane.core.schedules import Outcome, ScheduleRun
from fairlane.core.tick_counts import TickCounts
from fairlane.server.stream.clients import MOST_BYTES, SLOW, Client, Closing
from fairlane.server.stream.items import Item, items_of, live_item, notice
from fairlane.server.stream.skips import Skips
from fairlane.server.stream.subscriptions import Subscription
from fairlane.wire.events import FIGURES, TYPES, EventType, Notice, tasks_with_progress
from fairlane.wire.runs import ProgressView

ONE, OTHER = "01890a5d-ac96-774b-bcce-b302099a8057", "01890a5d-ac96-774b-bcce-b302099a8058"
HALF = ProgressView(50.0, "half", "2026-01-01T00:00:00.000000Z")


def event(cursor: str, verb: str, task_id: str | None = ONE, **fields: Any) -> Event:
    return Event(cursor=cursor, verb=verb, at=moment(0), task_id=task_id, **fields)


def test_every_transition_has_a_type_and_every_type_an_origin() -> None:
    assert set(TRANSITIONS) <= set(TYPES)
    assert set(TYPES.values()) | FIGURES == set(EventType)


def test_a_cursor_is_given_away_only_when_all_before_it_was_told() -> None:
    events = [
        event("0-2", "submit"),
        event("0-2", "submit", OTHER),
        event("0-3", "claim"),
        event("0-4", "claim", OTHER),
        event("0-4", "start", OTHER),  # told to nobody
        event("0-5", "complete"),
    ]
    items = items_of(events, "0-1", {})
    assert [item.cursor for item in items] == ["0-1", "0-2", "0-3", "0-3", "0-5"]
    assert [item.place for item in items] == [(0, 2), (0, 2), (0, 3), (0, 4), (0, 5)]
    assert items_of(events[:1], None, {})[0].cursor == "0-2"
    assert "cursor" not in json.loads(items_of(events[:2], None, {})[0].text)


def test_progress_is_told_once_where_it_was_made_last() -> None:
    events = [
        event("1", "progress"),
        event("2", "progress", OTHER),
        event("3", "progress"),
        event("4", "start"),
        event("5", "complete", OTHER),
    ]
    assert tasks_with_progress(events) == [ONE]
    items = items_of(events, "0", {ONE: HALF})
    assert [(item.type, item.task_id, item.cursor) for item in items] == [
        ("task.progress", ONE, "3"),
        ("task.completed", OTHER, "5"),
    ]
    assert json.loads(items[0].text)["data"]["progress"]["percent"] == 50.0
    assert items_of(events, "0", {}) != []  # nobody wants progress: nobody is told
    assert [item.type for item in items_of(events, "0", {})] == ["task.completed"]


@pytest.mark.parametrize("cursors", [("9", "10"), ("7-12", "11-2"), ("0-99", "0-100")])
def test_cursors_can_be_compared(cursors: tuple[str, str]) -> None:
    earlier, later = map(place_of, cursors)
    assert earlier < later


TASK = live_item("task.failed", {}, task_id=ONE, queue="a")
WORKER = live_item("worker.dead", {})
DEPTH = live_item("queue.depth", {}, queue="a")


@pytest.mark.parametrize(
    ("subscription", "wanted"),
    [
        (Subscription(), [TASK, WORKER]),
        (Subscription(frozenset({"task.failed", "queue.depth"})), [TASK, DEPTH]),
        (Subscription(task_ids=frozenset({ONE})), [TASK]),
        (Subscription(task_ids=frozenset({OTHER})), []),
        (Subscription(queues=frozenset({"a"})), [TASK]),
        (Subscription(queues=frozenset({"b"})), []),
        (Subscription(frozenset({"worker.dead"}), queues=frozenset({"b"})), [WORKER]),
        (Subscription(frozenset({"queue.depth"}), queues=frozenset({"a"})), [DEPTH]),
        (Subscription(frozenset({"queue.depth"}), queues=frozenset({"b"})), []),
    ],
)
def test_filters(subscription: Subscription, wanted: list[Item]) -> None:
    assert [item for item in (TASK, WORKER, DEPTH) if subscription.wants(item)] == wanted


async def welcome() -> bool:
    return True


def client() -> Client:
    return Client(Subscription(), welcome)


def progress(number: int) -> Item:
    return live_item("task.progress", number, str(number), key=("task.progress", ONE), task_id=ONE)


async def test_what_is_overtaken_is_passed_over_and_the_rest_is_not() -> None:
    listener = client()
    start = live_item("task.started", {}, "2", task_id=ONE)
    listener.offer([progress(1), start, progress(3), TASK, TASK])
    assert [item.type for item in await listener.take()] == [
        "task.started",
        "task.progress",
        "task.failed",
    ]  # the very same item twice is one
    assert listener.cursor == "3"


async def test_what_is_known_is_not_told_again() -> None:
    listener = client()
    listener.after = (0, 3)
    listener.offer(items_of([event(f"0-{n}", "submit", new_id()) for n in range(1, 6)], "0-0", {}))
    assert [item.cursor for item in await listener.take()] == ["0-4", "0-5"]


async def test_one_that_reads_nothing_ends() -> None:
    listener = client()
    text = "x" * 1_000
    offered = 0
    while listener.closing is None:
        listener.put(live_item("task.failed", text))
        offered += len(text)
        assert offered < 2 * MOST_BYTES
    assert listener.closing == SLOW
    assert await listener.take() == []
    listener.put(TASK)
    assert await listener.take() == []


async def test_last_words_are_sent_before_the_end() -> None:
    listener = client()
    listener.put(TASK)
    listener.end(Closing(1008), notice(Notice.ERROR, {"code": "x"}))
    listener.end(SLOW)
    assert [item.type for item in await listener.take()] == ["error"]
    assert await listener.take() == []
    assert listener.closing == Closing(1008)


def test_each_tick_that_was_not_fired_is_told_once() -> None:
    counts, skips = TickCounts(), Skips()

    def skip(tick: int) -> list[int]:
        nonlocal counts
        missed = ScheduleRun(tick, Outcome.MISSED, None, 3)
        counts = counts.counted(tick, [("daily", missed)], [])
        return told()

    def told() -> list[int]:
        return [item.event.data.number for item in skips.take(counts)]

    assert told() == []
    assert skip(1_000_000) == [1]
    assert told() == []
    assert skip(2_000_000) == [2]
    skips.forget()
    assert skip(3_000_000) == []
    for _ in range(150):
        counts = counts.counted(1, [("daily", ScheduleRun(1, Outcome.PAUSED))], [])
    assert told() == list(range(54, 154))
    counts = TickCounts()  # the store was made again
    assert told() == []
    assert skip(4_000_000) == [1]
