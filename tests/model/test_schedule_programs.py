"""Random programs of schedules: every engine against the model, and against each other."""

from __future__ import annotations

import random
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import Servers
from tests.fixtures.stores import KINDS
from tests.model import profile
from tests.model.driving import TooSlow
from tests.model.schedule_driving import SchedulePair, make_step
from tests.model.stores import Stores

PROGRAMS, STEPS = (300, 80) if profile.FULL else (30, 60)


@pytest.mark.timeout(3_600)
def test_every_engine_agrees_with_the_model(servers: Servers, tmp_path: Path) -> None:
    """Each step is compared on each engine; at the end the engines are compared, too."""
    slow = steps = 0
    with ExitStack() as stack:
        kinds = []
        for kind in KINDS:
            folder = tmp_path / kind
            folder.mkdir()
            stores = Stores(kind, servers, folder, SchedulePair)
            kinds.append(stack.enter_context(stores))
        for seed in range(PROGRAMS):
            outcomes = []
            try:
                for kind, stores in zip(KINDS, kinds, strict=True):
                    pair = stores.pair()
                    assert isinstance(pair, SchedulePair)
                    try:
                        run_program(pair, seed, STEPS)
                    except AssertionError as error:
                        raise AssertionError(f"program {seed} on {kind}, {pair.steps}") from error
                    steps += pair.steps
                    outcomes.append(pair.outcome())
            except TooSlow:
                slow += 1
                continue
            first, *others = outcomes
            assert others == [first] * len(others), f"program {seed}"
    profile.report(f"{PROGRAMS} programs, {steps} steps compared, {slow} programs too slow to tell")
    assert slow < PROGRAMS / 2


def run_program(pair: SchedulePair, seed: int, steps: int) -> None:
    """Run one, compared after every step."""
    rng = random.Random(seed)
    for _ in range(steps):
        pair.follow(make_step(rng))
