"""All engines run the same random programs, and agree field by field."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from tests.conftest import Servers
from tests.fixtures.stores import KINDS
from tests.model import floods, profile, programs
from tests.model.driving import SLACK, Pair, TooSlow
from tests.model.floods import Floods
from tests.model.programs import Choices
from tests.model.stores import Stores

P = TypeVar("P", bound=Pair)


def make_step(rng: random.Random, pair: Pair) -> programs.Do:
    choices = choices_of(rng)
    weights = [programs.SUBMITS, *(weight for _, weight in programs.STEPS)]
    (chosen,) = rng.choices(range(len(weights)), weights)
    if chosen == 0:
        return programs.submit(choices, pair.ids, pair.absolute)
    return programs.STEPS[chosen - 1][0](choices)


def make_flood_step(rng: random.Random, _: Pair) -> programs.Do:
    weights = [weight for _, weight in floods.STEPS]
    ((make, _weight),) = rng.choices(floods.STEPS, weights)
    return make(choices_of(rng))


def choices_of(rng: random.Random) -> Choices:
    return Choices(lambda options: options[rng.randrange(len(options))])


def fields(pair: Pair) -> list[dict[str, object] | None]:
    """Every field of every task, times rounded to what decides anything, workers by number."""

    def rounded(value: object) -> object:
        match value:
            case dict():
                return {
                    name: round((_seconds(each) - pair.epoch) / (2 * SLACK))
                    if name.endswith("_at") and each is not None
                    else rounded(each)
                    for name, each in value.items()
                }
            case list() | tuple():
                return [rounded(each) for each in value]
            case str() if value in pair.workers:
                return pair.workers.index(value)
            case _:
                return value

    found = pair.run(pair.backend.ops.get(pair.ids)) if pair.ids else []
    return [None if task is None else _dict(rounded(msgspec.to_builtins(task))) for task in found]


def _dict(value: object) -> dict[str, object]:
    assert isinstance(value, dict)
    return value


def _seconds(text: object) -> float:
    return msgspec.convert(text, datetime).timestamp()


def run_on_all(
    servers: Servers,
    folder: Path,
    make: Callable[[random.Random, Pair], programs.Do],
    of: type[P],
) -> list[P]:
    """Run random programs on stores of all kinds. Return the pairs that they were run with."""
    done: list[P] = []
    steps = slow = 0
    with ExitStack() as stack:
        kinds = []
        for kind in KINDS:
            (folder / kind).mkdir()
            kinds.append(stack.enter_context(Stores(kind, servers, folder / kind, of)))
        for seed in range(profile.PROGRAMS):
            rng = random.Random(seed)
            pairs = [stores.pair() for stores in kinds]
            done += pairs
            try:
                for _ in range(profile.STEPS):
                    step = make(rng, pairs[0])
                    for pair in pairs:
                        pair.do(step)
                    steps += 1
                for pair in pairs:
                    pair.finish()
                first, *others = [fields(pair) for pair in pairs]
            except TooSlow:
                slow += 1
                continue
            except AssertionError as error:
                raise AssertionError(f"program {seed}") from error
            for kind, other in zip(KINDS[1:], others, strict=True):
                assert first == other, f"program {seed}: {KINDS[0]} and {kind}"
    profile.report(
        f"{profile.PROGRAMS} programs, {steps} steps on each of {len(KINDS)} stores, "
        f"{slow} programs too slow to tell"
    )
    assert slow < profile.PROGRAMS / 2
    return done


@pytest.mark.timeout(3_600)
def test_engines_agree_with_each_other(servers: Servers, tmp_path: Path) -> None:
    run_on_all(servers, tmp_path, make_step, Pair)


@pytest.mark.timeout(3_600)
def test_engines_agree_in_floods(servers: Servers, tmp_path: Path) -> None:
    pairs = run_on_all(servers, tmp_path, make_flood_step, Floods)
    found = sum(pair.floods for pair in pairs)
    profile.report(f"{found} claims found more due tasks than they queue at once")
    assert found > len(pairs)
