"""docs/reference/states.md: the state machine, from `core/machine.py`."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from fairlane.core import machine
from fairlane.core.machine import TRANSITIONS, Clears, Move, Slot, Verb, decide
from fairlane.core.model import TaskError
from fairlane.core.outcomes import (
    Completed,
    Disowned,
    Failed,
    Lost,
    Outcome,
    Released,
    Snoozed,
    TimedOut,
    Unstarted,
)
from fairlane.core.retry import RetryPolicy
from fairlane.core.states import State
from tools.reference.markdown import code, page, table


class _Task(msgspec.Struct, frozen=True):
    """A task of which `decide` is asked."""

    retry_count: int = 0
    max_retries: int = 3
    returns: int = 0
    timeout: float | None = 60.0
    retry: RetryPolicy = RetryPolicy()


_FRESH = _Task()
_SPENT = _Task(retry_count=3, returns=3)

_OUTCOMES: list[tuple[str, _Task, Outcome]] = [
    ("the handler returned", _FRESH, Completed(b"null")),
    ("the handler raised, retries are left", _FRESH, Failed(TaskError(""))),
    ("the handler raised, no retries are left", _SPENT, Failed(TaskError(""))),
    ("the error is not retriable", _FRESH, Failed(TaskError("", retriable=False))),
    ("the worker ended a run past its time limit", _FRESH, TimedOut()),
    ("the same, no retries are left", _SPENT, TimedOut()),
    ("maintenance found a run past its time limit", _FRESH, TimedOut(running=True)),
    ("the same, no retries are left", _SPENT, TimedOut(running=True)),
    ("the worker died during the run", _FRESH, Lost(started=True)),
    (
        "the same, and the store's setting `requeue_spread` is above 0",
        _FRESH,
        Lost(started=True, spread=60.0),
    ),
    ("the worker died during the run, no retries are left", _SPENT, Lost(started=True)),
    ("the worker died before the run", _FRESH, Lost(started=False)),
    ("the same, for the fourth time", _SPENT, Lost(started=False)),
    ("the worker did not start the task in time", _FRESH, Unstarted()),
    ("the same, for the fourth time", _SPENT, Unstarted()),
    ("the worker lives, but does not have a run that started", _FRESH, Disowned(started=True)),
    ("the same, no retries are left", _SPENT, Disowned(started=True)),
    (
        "the worker lives, but does not have a run that did not start",
        _FRESH,
        Disowned(started=False),
    ),
    ("the same, for the fourth time", _SPENT, Disowned(started=False)),
    ("the worker gave the task back", _FRESH, Released()),
    ("the handler asked to run later", _FRESH, Snoozed(60.0)),
]
_DECIDED = [(*each, decide(each[1], each[2], 0.5)) for each in _OUTCOMES]

_NAMED: list[tuple[str, Move]] = [
    ("machine.CANCEL", machine.CANCEL),
    ("machine.DOOM", machine.DOOM),
    ("machine.REPLACE", machine.REPLACE),
    ("machine.EXPIRE", machine.EXPIRE),
    ("machine.DUE", machine.DUE),
    ("machine.FREE", machine.FREE),
    ("machine.replay()", machine.replay(reset_retry_count=True, level=None)),
]
_MOVES = [move for *_, move in _DECIDED] + [move for _, move in _NAMED]


def render() -> str:
    """Return the page."""
    return page(
        "The states of a task",
        "The core decides every move of a task (`core/machine.py`), and engines apply it. This "
        "page is written from the table `TRANSITIONS` and from what `decide` returns.",
        _diagram(),
        "`delete` is not drawn: it removes a task that has ended, or that waits to be retried.",
        "## Verbs",
        "*Place*: a task that keeps its place keeps its `ready_at`. *Clears*: what the move "
        "removes from the task. *Wakes*: the task can be claimed at once, so idle workers are "
        "woken. *Slot*: what happens to the concurrency slot of the run that the move ends; one "
        "that lingers stays taken until the worker reports or dies.",
        table(
            ("verb", "from", "to", "place", "clears", "wakes", "slot"),
            [_verb(verb) for verb in Verb],
        ),
        "## What follows from a run",
        "`settle` takes the outcome of a run, and `decide` returns the move. *Run* is how the run "
        "is recorded in the history of the task; *label* is what the move is counted under.",
        table(
            ("what happened", "outcome", "verb", "to", "run", "label", "slot", "retries"),
            [_outcome(*each) for each in _DECIDED],
        ),
        "## What else moves a task",
        table(
            ("move", "verb", "to", "label", "place", "slot"),
            [
                (
                    code(name),
                    code(move.verb),
                    code(move.state),
                    code(move.label),
                    move.place.value,
                    _slot([move]),
                )
                for name, move in _NAMED
            ],
        ),
        "`machine.DOOM`: a task that it depends on ended badly. `machine.REPLACE`: a newer unique "
        "task took its place. `machine.FREE`: its last parent has ended, after its time had come.",
    )


def _diagram() -> str:
    arrows: dict[tuple[str, str], list[str]] = {}
    for verb, row in TRANSITIONS.items():
        for source in _ordered(row.sources) or ["[*]"]:
            for target in _ordered(row.targets):
                arrows.setdefault((source, target), []).append(verb.value)
    lines = [f"    {a} --> {b}: {', '.join(verbs)}" for (a, b), verbs in arrows.items()]
    return "\n".join(["```mermaid", "stateDiagram-v2", *lines, "```"])


def _verb(verb: Verb) -> tuple[str, ...]:
    row = TRANSITIONS[verb]
    moves = [move for move in _MOVES if move.verb is verb]
    return (
        code(verb.value),
        ", ".join(map(code, _ordered(row.sources))) or "(no task)",
        ", ".join(map(code, _ordered(row.targets))) or "(no task)",
        _either({row.place, *(move.place for move in moves)}),
        ", ".join(each.name.lower() for each in Clears if each in row.clears and each.name),
        "yes" if row.wakes else "",
        _slot(moves),
    )


def _outcome(about: str, task: _Task, outcome: Outcome, move: Move) -> tuple[str, ...]:
    return (
        about,
        code(type(outcome).__name__),
        code(move.verb),
        code(move.state),
        code(move.run or ""),
        code(move.label),
        _slot([move]),
        "+1" if move.retry_count == task.retry_count + 1 else "",
    )


def _slot(moves: Iterable[Move]) -> str:
    """Return what happens to a slot, for moves that end a run."""
    return _either({move.slot for move in moves if move.run is not None})


def _either(values: Iterable[Slot | machine.Place]) -> str:
    return " or ".join(sorted(each.value for each in values))


def _ordered(states: Iterable[State]) -> list[str]:
    return [state.value for state in State if state in set(states)]
