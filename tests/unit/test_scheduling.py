"""Operations on schedules: what they write, and that nobody's change is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

import pytest
from msgspec.structs import replace

from fairlane.core import audit, encryption, firing, limits, recurrence, scheduling
from fairlane.core.documents import Document
from fairlane.core.encryption import Encryption
from fairlane.core.errors import (
    BatchTooLarge,
    EncryptionRequired,
    InvalidCursor,
    InvalidPayload,
    InvalidSchedule,
    InvalidTaskId,
    ScheduleConflict,
    StoreBusy,
    TooManyLanes,
    UnknownSchedule,
)
from fairlane.core.firing import NEVER
from fairlane.core.ids import numbered
from fairlane.core.model import NewTask, moment
from fairlane.core.recurrence import Cron, every
from fairlane.core.schedules import (
    Missed,
    NewSchedule,
    Outcome,
    Overlap,
    Pause,
    Schedule,
    ScheduleRun,
    Source,
    new_schedule,
)
from fairlane.core.scheduling import KIND, Fired
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.core.tick_counts import TickCounts
from fairlane.core.zones import zone_of
from tests.unit.make import NOON, NOW, SECOND, task_id
from tests.unit.shelf import Shelf, once

HOUR = 3600 * SECOND
DAY = 24 * HOUR


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def declared(schedule_id: str = "daily", rule: Any = None, **options: Any) -> NewSchedule:
    task = new_task(options.pop("type", "work"), options.pop("payload", None))
    return new_schedule(schedule_id, rule or every(3600), task, **options)


def put(shelf: Shelf, *new: NewSchedule, **options: Any) -> Schedule:
    return shelf.run(scheduling.put_schedules(shelf, new or [declared()], **options))[-1]


def get(shelf: Shelf, schedule_id: str = "daily") -> Schedule:
    (found,) = shelf.run(scheduling.schedules(shelf, [schedule_id]))
    assert found is not None
    return found


def fire(shelf: Shelf) -> list[tuple[str, Outcome]]:
    fired = shelf.run(scheduling.fire_due(shelf))
    return [(schedule_id, run.outcome) for schedule_id, run in fired.handled]


def outcomes(shelf: Shelf, schedule_id: str = "daily") -> list[Outcome]:
    return [run.outcome for run in get(shelf, schedule_id).standing.runs]


def counts(shelf: Shelf) -> TickCounts:
    return shelf.run(scheduling.tick_counts(shelf))


def pause(shelf: Shelf, **options: Any) -> Schedule:
    return shelf.run(scheduling.pause_schedule(shelf, "daily", **options))


def resume(shelf: Shelf, **options: Any) -> Schedule:
    return shelf.run(scheduling.resume_schedule(shelf, "daily", **options))


def damaged(shelf: Shelf, schedule_id: str, value: bytes = b"[1]\n{}") -> None:
    shelf.of(KIND)[schedule_id] = Document(schedule_id, value, 0, version=1)


# -- declaring -------------------------------------------------------------------------------------


def test_a_schedule_is_stored_as_it_was_declared(shelf: Shelf) -> None:
    new = declared(note="n", overlap="queue", payload={"a": "line\nline"})
    stored = put(shelf, new)
    assert get(shelf) == stored
    assert (stored.rule, stored.template, stored.policy) == (new.rule, new.template, new.policy)
    assert (stored.payload, stored.note, stored.zone) == (new.payload, "n", "UTC")
    standing = stored.standing
    assert (standing.since, standing.tick) == (NOW, NOW + HOUR)
    assert (standing.source, standing.owner, standing.version) == (Source.API, "", 1)
    assert standing.created_at == standing.updated_at == standing.seen_at == NOW
    assert shelf.of(KIND)["daily"].at == NOW + HOUR


def test_what_was_stored_before_is_read(shelf: Shelf) -> None:
    """In the form that its first version had: standing, definition, payload."""
    first = (
        b'{"since":1,"tick":2,"last_at":3,"last_task":"x","runs":[[3,"fired","x",1,""]],'
        b'"pause":[4,5,"why"],"source":"code","owner":"shop","version":6}\n'
        b'[{"type":"cron","expression":"0 2 * * *","zone":"Europe/Berlin"},{"type":"work"},'
        b'{"missed":"all","overlap":"queue","jitter":7.0},"note"]\n'
        b'{"a":"\\n"}'
    )
    damaged(shelf, "daily", first)
    schedule = get(shelf)
    assert schedule.rule == Cron("0 2 * * *", "Europe/Berlin")
    assert (schedule.template.type, schedule.payload) == ("work", b'{"a":"\\n"}')
    assert (schedule.policy.missed, schedule.policy.overlap) == (Missed.ALL, Overlap.QUEUE)
    standing = schedule.standing
    assert (standing.since, standing.tick, standing.pause) == (1, 2, Pause(4, 5, "why"))
    assert standing.runs == (ScheduleRun(3, Outcome.FIRED, "x"),)
    assert (standing.source, standing.owner, standing.version) == (Source.CODE, "shop", 6)


def test_the_same_again_writes_nothing(shelf: Shelf) -> None:
    first = put(shelf)
    version = shelf.of(KIND)["daily"].version
    shelf.now += 100 * DAY
    assert put(shelf) == first
    assert shelf.of(KIND)["daily"].version == version


def test_what_code_declares_is_seen_once_an_hour(shelf: Shelf) -> None:
    first = put(shelf, owner="shop")
    assert (first.standing.source, first.standing.owner) == (Source.CODE, "shop")
    shelf.now += HOUR - 1
    assert put(shelf, owner="shop") == first
    shelf.now += 1
    again = put(shelf, owner="shop")
    assert again == replace(first, standing=replace(first.standing, seen_at=shelf.now))
    assert shelf.of("schedule_owner")["shop"].at == shelf.now


@pytest.mark.parametrize(
    ("change", "moves"),
    [
        ({"note": "new"}, False),
        ({"payload": {"b": 2}}, False),
        ({"overlap": "allow"}, False),
        ({"count": 5}, False),
        ({"rule": every(1800)}, True),
        ({"starts_at": NOON}, True),
        ({"ends_at": NOON + timedelta(days=9)}, True),
    ],
    ids=str,
)
def test_only_another_rule_moves_ticks(shelf: Shelf, change: dict[str, Any], moves: bool) -> None:
    put(shelf)
    shelf.now += 2 * HOUR + 1
    changed = put(shelf, declared(**change)).standing
    assert (changed.version, changed.updated_at, changed.created_at) == (2, shelf.now, NOW)
    assert changed.since == (shelf.now if moves else NOW)


def test_a_change_counts_failures_and_ticks_anew(shelf: Shelf) -> None:
    put(shelf, declared(count=3))
    shelf.now += HOUR
    fire(shelf)
    assert put(shelf, declared(count=3, note="n")).standing.left == 2
    assert put(shelf, declared(count=5)).standing.left == 5
    assert put(shelf).standing.left is None


def test_one_that_has_ended_may_be_changed_and_stays_ended(shelf: Shelf) -> None:
    put(shelf, declared(count=1))
    shelf.now += HOUR
    fire(shelf)
    changed = put(shelf, declared(count=1, note="over"))
    assert (changed.note, changed.standing.tick) == ("over", None)


def test_an_end_in_the_past_is_refused(shelf: Shelf) -> None:
    with pytest.raises(InvalidSchedule, match="daily would never fire: it ends before its next"):
        put(shelf, declared("other"), declared(ends_at=NOON))
    assert shelf.of(KIND) == {}


def test_an_id_that_occurs_twice_is_refused(shelf: Shelf) -> None:
    with pytest.raises(InvalidSchedule, match="An id occurs twice in one batch"):
        put(shelf, declared(), declared(note="other"))
    assert shelf.of(KIND) == {}


def test_too_many_at_once(shelf: Shelf) -> None:
    with pytest.raises(BatchTooLarge, match="At most 100 schedules are handled at once, not 101"):
        put(shelf, *[declared(f"s{number}") for number in range(101)])
    with pytest.raises(BatchTooLarge):
        shelf.run(scheduling.schedules(shelf, ["a"] * 101))


def test_too_many_at_all(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SCHEDULES", 2)
    put(shelf, declared("a"), declared("b"))
    shelf.now += HOUR
    fire(shelf)  # the counts take no place
    put(shelf, declared("a", note="new"))
    with pytest.raises(InvalidSchedule, match="At most 2 schedules are kept: drop one"):
        put(shelf, declared("a"), declared("c"))
    assert get(shelf, "a").note == "new"


def test_another_version_is_a_conflict(shelf: Shelf) -> None:
    with pytest.raises(ScheduleConflict, match="daily has version 0, not 1"):
        put(shelf, version=1)
    put(shelf, version=0)
    with pytest.raises(ScheduleConflict, match="daily has version 1, not 0"):
        put(shelf, declared(note="another"), version=0)
    assert put(shelf, declared(note="two"), version=1).standing.version == 2
    with pytest.raises(ScheduleConflict, match="daily has version 2, not 1"):
        put(shelf, declared(note="three"), version=1)


def test_a_change_whose_answer_was_lost_can_be_repeated(shelf: Shelf) -> None:
    created = put(shelf, version=0)
    assert put(shelf, version=0) == created
    first = put(shelf, declared(note="two"), version=1)
    assert put(shelf, declared(note="two"), version=1) == first


def test_a_repetition_changes_no_owner(shelf: Shelf) -> None:
    put(shelf, declared("code"), owner="shop", version=0)
    put(shelf, declared("api"), version=0)
    with pytest.raises(ScheduleConflict):
        put(shelf, declared("code"), version=0)
    with pytest.raises(ScheduleConflict):
        put(shelf, declared("api"), owner="shop", version=0)


def test_nobody_but_its_application_changes_a_schedule(shelf: Shelf) -> None:
    put(shelf, owner="shop")
    with pytest.raises(ScheduleConflict, match="by the code of shop, which would undo the change"):
        put(shelf, declared(note="mine"))


def test_code_does_not_take_over_what_was_made_by_hand(shelf: Shelf) -> None:
    before = put(shelf)
    with pytest.raises(ScheduleConflict, match=r"made by hand.*fairlane schedule delete daily"):
        put(shelf, declared("other"), declared(note="code"), owner="shop")
    assert get(shelf) == before
    assert shelf.of(KIND).keys() == {"daily"}
    drop(shelf)
    assert put(shelf, owner="shop").standing.owner == "shop"


def test_another_application_takes_over_what_it_declares_and_that_is_recorded(
    shelf: Shelf,
) -> None:
    put(shelf, declared("a"), declared("b"), owner="shop")
    for _ in range(2):
        assert put(shelf, declared("a"), owner="office").standing.owner == "office"
    (entry,) = shelf.run(audit.audit(shelf, 10)).entries
    assert (entry.actor, entry.action, entry.subject) == ("code:office", "schedule.take", "a")
    assert json.loads(entry.detail) == {"owner": "office", "before": "shop"}


def test_a_change_meanwhile_is_seen(shelf: Shelf) -> None:
    put(shelf)
    shelf.interfere = once(lambda: put(shelf, declared(note="other"), version=1))
    with pytest.raises(ScheduleConflict):
        put(shelf, declared(note="mine"), version=1)


def test_plain_text_is_refused_where_encryption_is_required(shelf: Shelf) -> None:
    put(shelf)
    shelf.run(encryption.set_encryption(shelf, Encryption.REQUIRED))
    with pytest.raises(EncryptionRequired):
        put(shelf, declared(note="new"))


# -- sweeping --------------------------------------------------------------------------------------


def sweep(shelf: Shelf, cursor: str | None = None) -> str | None:
    return shelf.run(scheduling.sweep_schedules(shelf, cursor))


def test_what_an_application_left_out_for_a_day_is_dropped(shelf: Shelf) -> None:
    put(shelf, declared("old"), declared("new"), owner="shop")
    put(shelf, declared("api"))
    put(shelf, declared("else"), owner="elsewhere")
    shelf.of("schedule_owner").pop("elsewhere")
    damaged(shelf, "damaged")
    shelf.now += DAY - 1
    put(shelf, declared("new"), owner="shop")
    assert sweep(shelf) is None
    assert "old" in shelf.of(KIND)
    shelf.now += HOUR
    put(shelf, declared("new"), owner="shop")
    sweep(shelf)
    assert "old" in shelf.of(KIND)  # another batch may still have it
    shelf.now += 60 * SECOND
    sweep(shelf)
    assert shelf.of(KIND).keys() == {"new", "api", "else", "damaged"}


def give_zones_the_rules_of(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """As if this process had started again with a newer database of time zones."""
    monkeypatch.setattr(recurrence, "zone_of", lambda _: zone_of(name))
    monkeypatch.setattr(recurrence, "next_two", lru_cache(recurrence.next_two.__wrapped__))


def test_a_new_tick_is_computed_if_a_zone_has_new_rules(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(shelf, declared(rule=recurrence.cron("0 2 * * *", "Europe/Berlin")))
    version = shelf.of(KIND)["daily"].version
    sweep(shelf)
    assert shelf.of(KIND)["daily"].version == version
    give_zones_the_rules_of(monkeypatch, "America/New_York")
    sweep(shelf)
    tick = get(shelf).standing.tick or 0
    assert moment(tick) == datetime.fromisoformat("2026-03-02T07:00Z")
    assert shelf.of(KIND)["daily"].at == tick


def test_what_another_process_could_not_read_comes_back(shelf: Shelf) -> None:
    """To its place among the ticks that are due, or to that of its next one."""
    put(shelf, declared("late"), declared("later", every(7200)))
    shelf.now += HOUR
    value = {each: shelf.of(KIND)[each].value for each in ("late", "later")}
    for each in value:
        damaged(shelf, each)
    assert fire(shelf) == []
    for each, known in value.items():
        shelf.of(KIND)[each] = replace(shelf.of(KIND)[each], value=known)
    assert shelf.run(scheduling.due_schedules(shelf)) is None
    sweep(shelf)
    assert [shelf.of(KIND)[each].at for each in value] == [NOW + HOUR, NOW + 2 * HOUR]
    assert fire(shelf) == [("late", Outcome.FIRED)]


def test_a_sweep_goes_on_where_it_stopped(shelf: Shelf) -> None:
    for start in range(0, 150, 50):
        put(shelf, *(declared(f"s{number:03}") for number in range(start, start + 50)))
    cursor = sweep(shelf)
    assert cursor == f"{NOW + HOUR}:s099"
    assert sweep(shelf, cursor) is None


# -- pages -----------------------------------------------------------------------------------------


def test_pages(shelf: Shelf) -> None:
    put(shelf, *(declared(each) for each in "abc"))
    damaged(shelf, "older")
    shelf.now += HOUR
    fire(shelf)  # stores the counts, which are no schedule
    found: list[str] = []
    cursor: str | None = None
    for _ in range(5):
        page = shelf.run(scheduling.schedule_page(shelf, cursor, 1))
        found += [each.schedule_id for each in page.schedules]
        cursor = page.next_cursor
    assert found == ["a", "b", "c"]
    assert cursor is not None
    assert shelf.run(scheduling.schedule_page(shelf, cursor, 1)).next_cursor is None


@pytest.mark.parametrize("cursor", ["", "x", "1", "1:", "1:a b", "x:a", "9" * 19 + ":a", "٣:a"])
def test_bad_cursors(shelf: Shelf, cursor: str) -> None:
    with pytest.raises(InvalidCursor):
        shelf.run(scheduling.schedule_page(shelf, cursor))
    with pytest.raises(InvalidCursor):
        sweep(shelf, cursor)


# -- dropping, pausing, resuming -------------------------------------------------------------------


def drop(shelf: Shelf, schedule_id: str = "daily", **options: Any) -> bool:
    return shelf.run(scheduling.drop_schedule(shelf, schedule_id, **options))


def test_a_schedule_is_dropped_once(shelf: Shelf) -> None:
    put(shelf)
    with pytest.raises(ScheduleConflict, match="version 1, not 2"):
        drop(shelf, version=2)
    shelf.interfere = once(lambda: drop(shelf))
    assert not drop(shelf, version=1)
    assert shelf.run(scheduling.schedules(shelf, ["daily"])) == [None]


def test_what_code_declares_may_be_dropped(shelf: Shelf) -> None:
    put(shelf, owner="shop")
    assert drop(shelf, version=1)


def test_what_cannot_be_read_can_be_dropped(shelf: Shelf) -> None:
    damaged(shelf, "daily")
    assert drop(shelf)


def test_the_counts_are_no_schedule(shelf: Shelf) -> None:
    put(shelf)
    shelf.now += HOUR
    fire(shelf)
    assert not drop(shelf, "#ticks")
    assert shelf.run(scheduling.schedules(shelf, ["#ticks"])) == [None]
    assert counts(shelf).outcomes == {Outcome.FIRED: 1}


def test_a_pause(shelf: Shelf) -> None:
    put(shelf)
    paused = pause(shelf, note="migration", until=NOW + DAY)
    assert paused.standing.pause == Pause(NOW, NOW + DAY, "migration")
    assert (paused.standing.version, shelf.of(KIND)["daily"].at) == (2, NOW + DAY)
    shelf.now += HOUR
    assert pause(shelf, note="migration", until=NOW + DAY) == paused
    other = pause(shelf, note="longer")
    assert other.standing.pause == Pause(NOW, None, "longer")
    assert (other.standing.version, shelf.of(KIND)["daily"].at) == (3, NEVER)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"until": NOW}, "until lies in the past"),
        ({"note": "x" * 1_001}, "A note is a text of at most 1,000"),
        ({"note": "\0"}, "A note is"),
    ],
)
def test_a_pause_that_is_refused(shelf: Shelf, options: dict[str, Any], message: str) -> None:
    before = put(shelf)
    with pytest.raises(InvalidSchedule, match=message):
        pause(shelf, **options)
    assert get(shelf) == before


def test_the_end_of_a_pause_is_counted(shelf: Shelf) -> None:
    put(shelf)
    assert resume(shelf).standing.version == 1  # nothing to do
    pause(shelf)
    shelf.now += 2 * HOUR
    resumed = resume(shelf)
    assert (resumed.standing.pause, resumed.standing.version) == (None, 3)
    assert outcomes(shelf) == [Outcome.PAUSED]
    assert counts(shelf).outcomes == {Outcome.PAUSED: 2}
    pause(shelf)
    shelf.now += HOUR
    resume(shelf, missed=Missed.ALL)
    assert fire(shelf) == [("daily", Outcome.FIRED)]


@pytest.mark.parametrize("odd", ["", "a b", "\0", "#ticks", "x" * 201])
def test_what_no_schedule_can_be_called(shelf: Shelf, odd: str) -> None:
    put(shelf)
    with pytest.raises(UnknownSchedule, match="There is no schedule '"):
        shelf.run(scheduling.pause_schedule(shelf, odd))
    found = shelf.run(scheduling.schedules(shelf, [odd, "daily", odd]))
    assert [schedule is None for schedule in found] == [True, False, True]
    assert not shelf.run(scheduling.drop_schedule(shelf, odd))


def test_an_owner_has_a_name(shelf: Shelf) -> None:
    for odd in ("", "a b", "\0", 5):
        with pytest.raises(InvalidSchedule, match="The name of an application has"):
            put(shelf, owner=odd)
    assert shelf.kinds == {}


@pytest.mark.parametrize("act", [pause, resume])
def test_an_unknown_schedule(shelf: Shelf, act: Any) -> None:
    damaged(shelf, "odd")
    with pytest.raises(UnknownSchedule, match="There is no schedule 'daily'"):
        act(shelf)


def test_an_id_that_no_schedule_can_have(shelf: Shelf) -> None:
    put(shelf)
    with pytest.raises(UnknownSchedule, match="There is no schedule '#ticks'"):
        shelf.run(scheduling.pause_schedule(shelf, "#ticks"))


def test_an_application_has_a_name(shelf: Shelf) -> None:
    with pytest.raises(InvalidSchedule, match="The name of an application has 1 to 255"):
        put(shelf, owner="my shop")


def test_a_pause_and_a_declaration_at_once(shelf: Shelf) -> None:
    put(shelf)
    shelf.interfere = once(lambda: put(shelf, declared(note="new")))
    paused = pause(shelf)
    assert (paused.note, paused.standing.version) == ("new", 3)


# -- firing ----------------------------------------------------------------------------------------


def test_in_how_many_seconds_one_is_due(shelf: Shelf) -> None:
    def due() -> float | None:
        return shelf.run(scheduling.due_schedules(shelf))

    assert due() is None
    put(shelf)
    assert due() == 3600.0
    shelf.now += 2 * HOUR
    assert due() == -3600.0
    assert shelf.run(scheduling.fire_due(shelf)).more is False
    assert due() == 3600.0
    pause(shelf)
    assert due() is None


def test_a_tick_is_moved_on_from_and_its_task_stored_at_once(shelf: Shelf) -> None:
    put(shelf)
    assert shelf.run(scheduling.fire_due(shelf)) == Fired([])
    shelf.now += HOUR + SECOND
    assert fire(shelf) == [("daily", Outcome.FIRED)]
    assert fire(shelf) == []
    (task,) = shelf.tasks.values()
    standing = get(shelf).standing
    assert (task.spec.tick, standing.last_task) == (NOW + HOUR, task.task_id)
    assert shelf.of(KIND)["daily"].at == standing.tick == NOW + 2 * HOUR
    found = counts(shelf)
    assert (found.outcomes, found.lag_sum) == ({Outcome.FIRED: 1}, 1.0)


def test_lag_is_the_time_until_a_task_is_stored(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deciding takes time, too."""
    put(shelf, declared("a"), declared("b", overlap="replace", jitter=60))
    shelf.now += 2 * HOUR - 1
    decide = firing.fire

    def slowly(*args: Any) -> Any:
        shelf.now += 5 * SECOND
        return decide(*args)

    monkeypatch.setattr(firing, "fire", slowly)
    fire(shelf)
    late = [shelf.now - firing.fire_time(get(shelf, each), NOW + HOUR) for each in "ab"]
    assert counts(shelf).lag_sum == pytest.approx(sum(late) / SECOND)


def test_of_two_who_fire_one_begins_again(shelf: Shelf) -> None:
    put(shelf)
    shelf.now += HOUR
    shelf.interfere = once(lambda: fire(shelf))
    assert fire(shelf) == []
    assert len(shelf.tasks) == 1


@pytest.mark.parametrize(
    ("act", "expected"),
    [(pause, []), (drop, []), (lambda shelf: put(shelf, declared(payload={"b": 2})), [b'{"b":2}'])],
    ids=["pause", "drop", "put"],
)
def test_a_change_while_it_is_fired_counts(shelf: Shelf, act: Any, expected: list[bytes]) -> None:
    put(shelf)
    shelf.now += HOUR
    shelf.interfere = once(lambda: act(shelf))
    fire(shelf)
    assert [task.payload for task in shelf.tasks.values()] == expected


def test_who_is_overtaken_too_often_gives_up(shelf: Shelf) -> None:
    put(shelf)
    shelf.now += HOUR

    def touch() -> None:
        stored = shelf.of(KIND)
        stored["daily"] = replace(stored["daily"], version=stored["daily"].version + 1)

    shelf.interfere = touch
    with pytest.raises(StoreBusy):
        fire(shelf)
    assert shelf.tasks == {}


def test_the_last_task_of_a_schedule_is_looked_at(shelf: Shelf) -> None:
    put(shelf, declared("a"), declared("b", overlap="replace"))
    shelf.now += HOUR
    fire(shelf)
    last = get(shelf, "b").standing.last_task or ""
    shelf.now += HOUR
    assert fire(shelf) == [("a", Outcome.OVERLAP), ("b", Outcome.FIRED)]
    assert shelf.states[last] is State.CANCELLED
    last = get(shelf, "b").standing.last_task or ""
    del shelf.states[last]  # a deleted task has ended
    shelf.now += HOUR
    assert fire(shelf) == [("a", Outcome.OVERLAP), ("b", Outcome.FIRED)]


def test_a_last_task_that_is_deleted_meanwhile_has_ended(shelf: Shelf) -> None:
    put(shelf, declared(overlap="queue"))
    shelf.now += HOUR
    fire(shelf)
    (last,) = shelf.tasks
    shelf.states[last] = State.EXECUTING
    shelf.now += HOUR
    shelf.refuse = lambda _: shelf.states.pop(last, None)
    assert fire(shelf) == [("daily", Outcome.FIRED)]
    assert [task.depends_on for task in shelf.tasks.values()] == [(), ()]


@pytest.mark.parametrize("error", [TooManyLanes("full"), InvalidPayload("long")], ids=repr)
def test_who_is_refused_is_told_and_does_not_hold_up_others(shelf: Shelf, error: Exception) -> None:
    """The task that a refused one was to replace is cancelled once."""
    put(shelf, declared("bad", type="bad", overlap="replace"), declared("good"), declared("odd"))
    shelf.now += HOUR

    def refuse(task: NewTask) -> None:
        if task.type == "bad":
            raise error

    shelf.refuse = refuse
    refused, good, odd = ("bad", Outcome.REFUSED), ("good", Outcome.FIRED), ("odd", Outcome.FIRED)
    assert fire(shelf) == [refused, good, odd]
    (run,) = get(shelf, "bad").standing.runs
    assert run.reason in {"too_many_lanes: full", "invalid_payload: long"}
    assert counts(shelf).outcomes == {Outcome.REFUSED: 1, Outcome.FIRED: 2}
    assert fire(shelf) == []


def test_what_cannot_be_read_is_put_behind_everything(shelf: Shelf) -> None:
    damaged(shelf, "odd", b"nonsense")
    damaged(shelf, "older", b'{"since":0}\n{}\n{}')
    put(shelf)
    assert fire(shelf) == []
    assert [shelf.of(KIND)[each].at for each in ("odd", "older")] == [NEVER, NEVER]
    assert shelf.of(KIND)["odd"].value == b"nonsense"


def test_a_zone_that_this_process_does_not_know(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not hold up the others, and another process fires it."""
    with monkeypatch.context() as patch:
        patch.setattr(recurrence, "zone_of", lambda _: zone_of("UTC"))
        put(shelf, declared("new", Cron("0 * * * *", "Mars/Olympus")), declared("old"))
    shelf.now += HOUR
    assert sweep(shelf) is None
    fired = shelf.run(scheduling.fire_due(shelf))
    assert [schedule_id for schedule_id, _ in fired.handled] == ["old"]
    assert fired.unknown == {"new": get(shelf, "new").problem}
    assert shelf.of(KIND)["new"].at == shelf.now + 60 * SECOND
    assert fire(shelf) == []
    shelf.now += 60 * SECOND
    monkeypatch.setattr(recurrence, "zone_of", lambda _: zone_of("UTC"))
    assert fire(shelf) == [("new", Outcome.FIRED)]
    assert get(shelf, "new").standing.last_at == NOW + HOUR


def test_what_this_process_cannot_fire_is_left_to_others(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays due for them, and here nothing waits for it."""
    with monkeypatch.context() as patch:
        patch.setattr(recurrence, "zone_of", lambda _: zone_of("UTC"))
        put(shelf, *(declared(f"new{n}", Cron("0 * * * *", "Mars/Tharsis")) for n in range(2)))
    put(shelf, declared("old"))
    damaged(shelf, "odd", b"nonsense")
    shelf.now += HOUR
    before = dict(shelf.of(KIND))
    fired = shelf.run(scheduling.fire_due(shelf, ["other"]))
    assert [schedule_id for schedule_id, _ in fired.handled] == ["old"]
    assert set(fired.unknown) == {"new0", "new1", "odd"}
    assert fired.unknown["odd"] == "Another version of Fairlane has stored it, and fires it."
    left = list(fired.unknown)
    assert [shelf.of(KIND)[each] for each in left] == [before[each] for each in left]
    assert shelf.run(scheduling.fire_due(shelf, [])).unknown == fired.unknown
    assert shelf.run(scheduling.fire_due(shelf, left)) == Fired([])
    assert (shelf.run(scheduling.due_schedules(shelf)) or 0) < 0
    assert shelf.run(scheduling.due_schedules(shelf, left)) == 3600
    monkeypatch.setattr(limits, "SCHEDULE_PAGE", 3)
    shelf.run(scheduling.fire_due(shelf, ["other"]))  # more than it could remember
    moved = [each for each in left if shelf.of(KIND)[each] != before[each]]
    assert len(moved) == 1
    monkeypatch.setattr(recurrence, "zone_of", lambda _: zone_of("UTC"))
    assert ("new0", Outcome.FIRED) in fire(shelf)


def test_a_tick_that_a_new_rule_of_a_zone_moved(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has swept yet: it is not fired at its old time."""
    put(shelf, declared(rule=recurrence.cron("0 13 * * *", "UTC")))
    shelf.now += HOUR
    give_zones_the_rules_of(monkeypatch, "Atlantic/Azores")
    assert fire(shelf) == []
    assert shelf.of(KIND)["daily"].at == NOW + 2 * HOUR


def test_as_many_as_fit_into_one_submission(shelf: Shelf) -> None:
    many = {"missed": "all", "most": 600, "within": 1e7, "overlap": "allow"}
    put(shelf, declared("a", **many), declared("b", **many), declared("c", missed="all"))
    shelf.now += 600 * HOUR
    for handled, more in ((600, True), (625, False)):
        fired = shelf.run(scheduling.fire_due(shelf))
        assert (sum(run.outcome is Outcome.FIRED for _, run in fired.handled), fired.more) == (
            handled,
            more,
        )
    assert shelf.run(scheduling.fire_due(shelf)) == Fired([])


def test_five_hundred_schedules_at_once(shelf: Shelf) -> None:
    for start in range(0, 600, 50):
        put(shelf, *(declared(f"s{number:03}") for number in range(start, start + 50)))
    shelf.now += HOUR
    assert [shelf.run(scheduling.fire_due(shelf)).more for _ in range(2)] == [True, False]
    assert len(shelf.tasks) == 600


# -- after an outage -------------------------------------------------------------------------------


class Computed:
    """Counts the ticks of cron expressions that are computed."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.ticks = 0
        cached: tuple[Any, ...] = (
            recurrence.next_two,
            recurrence.newest_tick,
            recurrence._newest_ticks,
            recurrence.count_ticks,
        )
        for each in cached:
            each.cache_clear()
        after = Cron.after

        def counted(rule: Cron, time: int) -> Iterator[int]:
            for tick in after(rule, time):
                self.ticks += 1
                yield tick

        patch.setattr(Cron, "after", counted)


def catch_up(shelf: Shelf, computed: Computed) -> Iterator[tuple[int, int]]:
    """Fire everything, and say of each step how many schedules it handled, and computed ticks."""
    more = True
    while more:
        before = computed.ticks
        fired = shelf.run(scheduling.fire_due(shelf))
        more = fired.more
        yield len({schedule_id for schedule_id, _ in fired.handled}), computed.ticks - before


def put_many(shelf: Shelf, schedules: Sequence[NewSchedule]) -> None:
    for start in range(0, len(schedules), 100):
        put(shelf, *schedules[start : start + 100])


def test_who_catches_up_on_many_decides_about_what_fits(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And computes the ticks of one rule once."""
    computed = Computed(monkeypatch)
    rule = recurrence.cron("* * * * *")
    put_many(shelf, [declared(f"s{number}", rule, missed="all") for number in range(500)])
    shelf.now += DAY
    steps = list(catch_up(shelf, computed))
    assert [schedules for schedules, _ in steps] == [10] * 50
    assert len(shelf.tasks) == 500 * 100
    assert sum(ticks for _, ticks in steps) < 2 * limits.TICKS_COUNTED
    assert fire(shelf) == []


def test_missed_ticks_of_one_rule_are_counted_once(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed = Computed(monkeypatch)
    rule = recurrence.cron("* * * * *")
    put_many(shelf, [declared(f"s{number}", rule) for number in range(450)])
    shelf.now += 7 * DAY
    ((schedules, ticks),) = catch_up(shelf, computed)
    assert schedules == 450
    assert ticks < 2 * limits.TICKS_COUNTED


@pytest.mark.parametrize("options", [{}, {"missed": "all"}, {"missed": "all", "most": 1_000}])
def test_who_catches_up_on_many_rules_does_so_in_small_steps(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    """Each of them fires every minute, and is written in another way."""
    computed = Computed(monkeypatch)
    rules = [recurrence.cron(f"0-{minute},{minute}-59 * * * *") for minute in range(1, 59)]
    many = [declared(f"s{number:02}", rule, **options) for number, rule in enumerate(rules)]
    put_many(shelf, many)
    shelf.now += 7 * DAY
    steps = list(catch_up(shelf, computed))
    assert sum(schedules for schedules, _ in steps) == len(rules)
    assert len(steps) <= len(rules)
    assert max(ticks for _, ticks in steps) <= 3 * limits.TICKS_DECIDED
    assert fire(shelf) == []


def test_intervals_are_not_counted_one_by_one(shelf: Shelf) -> None:
    many = [declared(f"s{number}", every(60, number % 60)) for number in range(450)]
    put_many(shelf, many)
    shelf.now += 7 * DAY
    assert not shelf.run(scheduling.fire_due(shelf)).more
    assert len(shelf.tasks) == 450


def test_large_schedules_are_fired_in_parts(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PAGE_BYTES", 10_000)
    put(shelf, *(declared(f"s{number}", payload={"a": "x" * 5_000}) for number in range(5)))
    shelf.now += HOUR
    assert [len(fire(shelf)) for _ in range(6)] == [1] * 5 + [0]


# -- besides the ticks -----------------------------------------------------------------------------


def run(shelf: Shelf, id: str = task_id(1), **options: Any) -> str:
    return shelf.run(scheduling.run_schedule(shelf, "daily", id, **options))


def backfill(shelf: Shelf, hours: int, id: str = task_id(1), **options: Any) -> list[str]:
    op = scheduling.backfill_schedule(shelf, "daily", id, NOW - hours * HOUR, NOW, **options)
    return shelf.run(op)


def test_a_run_besides_the_ticks(shelf: Shelf) -> None:
    before = put(shelf)
    for _ in range(2):
        assert run(shelf) == task_id(1)
    assert run(shelf, task_id(2), tick=NOW - HOUR) == task_id(2)
    first, second = shelf.tasks.values()
    assert (first.chosen, first.spec.tick, second.spec.tick) == (True, NOW, NOW - HOUR)
    after = get(shelf)
    assert after == replace(before, standing=replace(before.standing, runs=after.standing.runs))
    assert outcomes(shelf) == [Outcome.MANUAL] * 2
    assert counts(shelf).outcomes == {Outcome.MANUAL: 2}
    with pytest.raises(InvalidTaskId):
        run(shelf, "one")


def test_a_run_while_it_is_fired(shelf: Shelf) -> None:
    put(shelf)
    shelf.now += HOUR
    shelf.interfere = once(lambda: fire(shelf))
    run(shelf)
    assert outcomes(shelf) == [Outcome.FIRED, Outcome.MANUAL]


def test_a_backfill(shelf: Shelf) -> None:
    put(shelf)
    ids = [numbered(task_id(1), number) for number in range(3)]
    for _ in range(2):
        assert backfill(shelf, 3) == ids
    tasks = list(shelf.tasks.values())
    assert [task.spec.tick for task in tasks] == [NOW - 3 * HOUR, NOW - 2 * HOUR, NOW - HOUR]
    assert [task.depends_on for task in tasks] == [(), (ids[0],), (ids[1],)]
    (run,) = get(shelf).standing.runs
    assert (run.count, run.reason, run.task_id) == (3, "backfill", ids[-1])
    assert counts(shelf).outcomes == {Outcome.MANUAL: 3}


@pytest.mark.parametrize(
    ("policy", "overlap"), [("skip", Overlap.ALLOW), ("allow", None), ("allow", Overlap.ALLOW)]
)
def test_a_backfill_that_may_overlap(shelf: Shelf, policy: str, overlap: Overlap | None) -> None:
    put(shelf, declared(overlap=policy))
    backfill(shelf, 2, overlap=overlap)
    assert [task.depends_on for task in shelf.tasks.values()] == [(), ()]


def test_a_backfill_of_nothing(shelf: Shelf) -> None:
    before = put(shelf)
    assert backfill(shelf, 0) == []
    assert get(shelf) == before


def test_a_backfill_of_too_much(shelf: Shelf) -> None:
    put(shelf)
    assert len(backfill(shelf, 1_000)) == 1_000
    with pytest.raises(InvalidSchedule, match="More than 1,000 ticks lie in this time: backfill"):
        backfill(shelf, 1_001)


def test_a_backfill_of_more_bytes_than_fit_at_once(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(shelf, declared(payload={"a": "x" * 1_000}))
    monkeypatch.setattr(limits, "TICKS_BYTES", 3_100)
    assert len(backfill(shelf, 3)) == 3
    with pytest.raises(InvalidSchedule, match="at most 3 tasks are submitted at once, and 4 ticks"):
        backfill(shelf, 4)


def test_a_backfill_over_a_long_time(shelf: Shelf) -> None:
    schedule = put(shelf, declared(rule=recurrence.cron("0 0 29 2 */7")))
    century = 100 * 366 * DAY
    assert len(scheduling.backfilled(schedule, NOW, NOW + century)) == 3
    with pytest.raises(InvalidSchedule, match="at most 100 years: backfill it in parts"):
        scheduling.backfilled(schedule, NOW, NOW + century + 1)


def test_a_backfill_of_what_is_to_come(shelf: Shelf) -> None:
    before = put(shelf)
    for since, until in ((NOW, NOW + HOUR + 1), (NOW - HOUR, NOW + 2 * HOUR)):
        op = scheduling.backfill_schedule(shelf, "daily", task_id(1), since, until)
        with pytest.raises(InvalidSchedule, match="still to come"):
            shelf.run(op)
    assert get(shelf) == before
    op = scheduling.backfill_schedule(shelf, "daily", task_id(1), NOW, NOW + HOUR)
    assert shelf.run(op) == [task_id(1)]  # the tick of this moment


def test_a_backfill_to_the_end_of_time(shelf: Shelf) -> None:
    schedule = put(shelf, declared(rule=recurrence.cron("@yearly")))
    begin = firing.NEVER - 3 * 366 * DAY
    for end in (firing.NEVER, 10**18):  # there is no later moment
        assert len(scheduling.backfilled(schedule, begin, end)) == 3
