"""Unique tasks: while one is in certain states, there is no second of its kind.

A kind is a type and the values of chosen arguments. Submission turns it into a short key; the task
that was accepted last under a key holds it. A submission is a duplicate if its key is held by a
task in one of the states that count, which was submitted within the period.

The key takes in the states that count, so all tasks under one key agree about them. It is given up
as soon as its holder ends in a state that does not count, and at the latest when the holder is
deleted. A batch is one moment: what is there before it decides who is let in, in the batch's order,
and what it replaces has ended for all of it. A replay takes the key again if nobody else has it,
and goes on without it otherwise: an operator knows what he does.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from hashlib import blake2b
from typing import Any

import msgspec

from fairlane.core import limits
from fairlane.core.durations import Seconds, in_seconds
from fairlane.core.errors import InvalidUnique
from fairlane.core.priority import MICROSECONDS
from fairlane.core.raw_json import build
from fairlane.core.states import LIVE, WAITING, State
from fairlane.core.text import is_plain, shown


class Mode(StrEnum):
    """What becomes of a duplicate."""

    EXISTING = "existing"
    """It is not stored: the answer names the task that is there."""
    REJECT = "reject"
    """The submission is refused."""
    REPLACE = "replace"
    """A task that still waits is cancelled, and the new one takes its place. One that runs, or has
    ended, cannot be replaced: the submission is refused."""


class Unique(msgspec.Struct, frozen=True):
    """How a task is unique, in a submitter's words.

    `arguments` names the keys of the payload that count, None for all of it. `period` is in
    seconds or a timedelta, None for as long as the task is in one of the states.
    """

    arguments: tuple[str, ...] | None = None
    states: frozenset[State] = LIVE
    period: Seconds | None = None
    mode: Mode = Mode.EXISTING


class Hold(msgspec.Struct, frozen=True, gc=False):
    """The same as engines need it. `states` has a bit per state code, `period` microseconds.

    `arguments` are those the key was made from, for stores that make it themselves.
    """

    key: bytes
    states: int
    period: int | None
    mode: Mode
    arguments: tuple[str, ...] | None = None

    def blocks(self, state: State, created_at: int, now: int) -> bool:
        """Return whether a holder in this state, submitted then, makes this one a duplicate."""
        if not counts(self.states, state):
            return False
        return self.period is None or now - created_at < self.period

    def replaces(self, state: State) -> bool:
        """Return whether a holder that blocks it gives way."""
        return self.mode is Mode.REPLACE and state in WAITING


def mask(states: Iterable[State]) -> int:
    """States as engines store a set of them."""
    return sum(1 << state.code for state in set(states))


def unmask(states: int) -> frozenset[State]:
    """Return the states of a stored set."""
    return frozenset(state for state in State if counts(states, state))


def counts(states: int, state: State) -> bool:
    """Return whether a state is in a stored set."""
    return bool(states >> state.code & 1)


def hold(type: str, payload: bytes, unique: object) -> Hold | None:
    """Return what a task holds, if it is to be unique. `unique` may be True for the plain kind."""
    if unique is None or unique is False:
        return None
    how = checked(Unique() if unique is True else unique)
    states = mask(how.states)
    arguments: Any = build(payload)
    if how.arguments is not None:
        # What is missing counts as a value of its own: [] is no JSON object's member.
        arguments = [
            [name, [arguments[name]] if name in arguments else []] for name in how.arguments
        ]
    kind = msgspec.json.encode([type, states, arguments], order="sorted")
    period = None if how.period is None else int(in_seconds(how.period) * MICROSECONDS)
    key = blake2b(kind, digest_size=16).digest()
    return Hold(key, states, period, how.mode, how.arguments)


def checked(unique: object) -> Unique:
    """Return the options with sorted arguments. Raises InvalidUnique if they make no sense."""
    if not isinstance(unique, Unique):
        raise InvalidUnique(f"unique is True or a Unique(…). Got {shown(unique)}.")
    names: object = unique.arguments
    if names is not None and (
        not isinstance(names, list | tuple | set | frozenset)
        or not names
        or not all(is_plain(name) for name in names)
    ):
        raise InvalidUnique(
            f"unique by arguments takes at least one name of an argument. Got {shown(names)}."
        )
    states: object = unique.states
    if (
        not isinstance(states, list | tuple | set | frozenset)
        or not states
        or not all(isinstance(state, State) for state in states)
    ):
        raise InvalidUnique("unique needs at least one state in which a task counts.")
    period = in_seconds(unique.period)
    if period is not None and not (
        isinstance(period, int | float)
        and not isinstance(period, bool)
        and 0 < period <= limits.UNIQUE_SECONDS
    ):
        raise InvalidUnique(
            "A period of uniqueness is a number of seconds above 0 and at most "
            f"{limits.UNIQUE_SECONDS:,.0f}, or None. Got {shown(period)}."
        )
    try:
        mode = Mode(unique.mode)
    except ValueError:
        raise InvalidUnique(
            f"A mode of uniqueness is existing, reject or replace. Got {shown(unique.mode)}."
        ) from None
    arguments = None if names is None else tuple(sorted(set(names)))
    return Unique(arguments, frozenset(states), period, mode)
