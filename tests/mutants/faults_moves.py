"""Faults of moves: what the core decides, and every engine applies as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from fairlane.core import settlement
from fairlane.core.machine import (
    DOOM,
    NOT_STARTED,
    REPLACE,
    RERUN,
    WORKER_LOST,
    Clears,
    Move,
    Place,
    Slot,
    Verb,
)
from fairlane.core.states import State
from tests.mutants import planting
from tests.mutants.planting import Break


def move(concerns: Verb | Callable[[Move], bool], **values: Any) -> Break:
    """Some moves with other values. A value may be a function of the move."""

    def alter(move: Move) -> Move:
        if not (move.verb is concerns if isinstance(concerns, Verb) else concerns(move)):
            return move
        found = {name: new(move) if callable(new) else new for name, new in values.items()}
        return replace(move, **found)

    return planting.move(alter)


def _labelled(label: str) -> Callable[[Move], bool]:
    return lambda move: move.label == label


def _of_run(*runs: str) -> Callable[[Move], bool]:
    return lambda move: move.run in runs


def _without_reason(move: Move) -> Any:
    return move.error and replace(move.error, reason=None)


def _one_less(move: Move) -> int | None:
    return None if move.retry_count is None else max(0, move.retry_count - 1)


FAULTS: dict[str, Break] = {
    "another result is taken for a repetition": planting.replaced(
        settlement, "_same_result", lambda *_: True
    ),
    "a retry loses its place": move(Verb.RETRY, place=Place.RESET),
    "a retry comes at once": move(Verb.RETRY, after=0.0),
    "a retry keeps the progress": move(Verb.RETRY, clears=Clears.NOTHING),
    "a retry does not count the run": move(Verb.RETRY, retry_count=_one_less),
    "a retry is counted under another reason": move(Verb.RETRY, label="luck"),
    "a retry forgets its error": move(Verb.RETRY, error=None),
    "a snooze keeps its place": move(Verb.SNOOZE, place=Place.KEEP),
    "a snooze counts as a retry": move(Verb.SNOOZE, state=State.RETRYING),
    "a release goes to the end": move(Verb.RELEASE, verb=Verb.SNOOZE, state=State.SCHEDULED),
    "a release counts as a run": move(Verb.RELEASE, retry_count=lambda move: move.retry_count + 1),
    "a return is not counted": move(
        lambda move: move.run == "returned" and move.returns is not None,
        returns=lambda move: move.returns - 1,
    ),
    "what nobody starts is counted like a lost worker": move(
        _labelled(NOT_STARTED), label=WORKER_LOST
    ),
    "a lost run is recorded as released": move(_of_run("lost", "returned"), run="released"),
    "a lost run is not spread": move(
        lambda move: move.run == "lost" and move.verb is Verb.RETRY,
        verb=Verb.RELEASE,
        state=State.QUEUED,
        after=0.0,
        wakes=True,
    ),
    "a time limit does not grow": move(
        lambda move: move.label == "timeout" and move.timeout is not None,
        timeout=lambda move: move.timeout / 1.5,
    ),
    "a run that timed out frees its slot": move(_of_run("timed_out"), slot=Slot.FREE),
    "every failed run keeps its slot": move(_of_run("failed"), slot=Slot.LINGER),
    "a final failure does not count the run": move(Verb.FAIL, retry_count=_one_less),
    "a final failure is a dead letter": move(Verb.FAIL, state=State.DEAD_LETTER),
    "a dead letter does not say why": move(Verb.DEAD_LETTER, error=_without_reason),
    "a dead letter is recorded as failed": move(Verb.DEAD_LETTER, verb=Verb.FAIL),
    "a cancelled run frees its slot at once": move(_of_run("cancelled"), slot=Slot.FREE),
    "a cancelled run is recorded as released": move(_of_run("cancelled"), run="released"),
    "a doomed task says that it was replaced": move(
        _labelled(DOOM.label), label=REPLACE.label, error=REPLACE.error
    ),
    "a doomed task is counted like a cancelled one": move(_labelled(DOOM.label), label=""),
    "a replaced task fails": move(_labelled(REPLACE.label), state=State.FAILED),
    "an expired task is cancelled": move(Verb.EXPIRE, state=State.CANCELLED),
    "an expired task has no error": move(Verb.EXPIRE, error=None),
    "a task that is due goes to the end": move(
        lambda move: move.verb is Verb.DUE and move.place is Place.KEEP, place=Place.RESET
    ),
    "a released child keeps its old place": move(
        lambda move: move.verb is Verb.DUE and move.place is Place.RESET, place=Place.KEEP
    ),
    "a replay keeps its place": move(Verb.REPLAY, place=Place.KEEP),
    "a replay keeps the error": move(Verb.REPLAY, clears=Clears.NOTHING),
    "a replay keeps the expiry": move(Verb.REPLAY, clears=RERUN),
    "a replay keeps the returns": move(Verb.REPLAY, returns=1),
    "a replay keeps the retries": move(Verb.REPLAY, retry_count=None),
    "a rerun keeps the retries": move(Verb.RERUN, retry_count=None),
    "a rerun keeps the returns": move(Verb.RERUN, returns=1),
    "a rerun is told as a replay": move(Verb.RERUN, verb=Verb.REPLAY),
    "a rebind keeps the retries": move(Verb.REBIND, retry_count=None),
    "a replay keeps its level": move(Verb.REPLAY, level=None),
}
