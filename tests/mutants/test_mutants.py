"""The model catches every faulty engine: a suite that lets one pass proves nothing."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from enum import Enum
from typing import TypeVar

import pytest

from fairlane.core.errors import StoreError
from fairlane.core.flow import Op
from tests.conftest import Servers
from tests.model.driving import Pair, TooSlow
from tests.model.stores import Stores
from tests.model.test_differential import make_step
from tests.mutants import (
    faults_moves,
    faults_postgres,
    faults_redis,
    faults_rules,
    faults_sqlite,
)
from tests.mutants.planting import Break

T = TypeVar("T")

PROGRAMS, STEPS = 600, 100
"""A fault that so many random programs of so many steps do not show is not caught."""

TRIES = 20
"""How often the sound engine is run again where a busy machine was too slow to tell."""

ENGINES = {
    "sqlite-memory": faults_sqlite.FAULTS,
    "postgres-newest": faults_postgres.FAULTS,
    "redis": faults_redis.FAULTS,
    "valkey": faults_redis.FAULTS,
}
SCOUT = "sqlite-memory"
"""Its programs are the fastest: what shows a fault there is tried first on the others."""

FAULTS = [
    pytest.param(kind, fault, break_it, scouts.get(fault), id=f"{kind}: {fault} ({where})")
    for kind, of_engine in ENGINES.items()
    for where, faults, scouts in (
        ("move", faults_moves.FAULTS, faults_moves.FAULTS),
        ("rule", faults_rules.FAULTS, faults_rules.FAULTS),
        ("engine", of_engine, ENGINES[SCOUT]),
    )
    for fault, break_it in faults.items()
]


class Verdict(Enum):
    AGREE = "the model and the store agree"
    DISAGREE = "they disagree"
    SLOW = "the machine was too slow to tell"


class Nonsense(Exception):
    """The store does not understand what it was sent: no model is needed to find that."""


_NONSENSE = re.compile(r"\(42\w{3}\)|migrate|syntax error|no such|compiling|attempt to")


class CarefulPair(Pair):
    """Raises Nonsense where a fault is not one that a program could show."""

    def run(self, op: Op[T]) -> T:
        try:
            return super().run(op)
        except StoreError as error:
            if _NONSENSE.search(str(error)):
                raise Nonsense(str(error)) from error
            raise


class Programs:
    """Random programs on stores of one kind."""

    def __init__(self, stores: Stores[CarefulPair], hints: defaultdict[str, list[int]]) -> None:
        self._stores = stores
        self._hints = hints
        """By fault: programs that showed it on any kind of store."""
        self._seeds = list(range(PROGRAMS))
        """Those first that showed a fault before."""
        self._shown: dict[Break, int | None] = {}
        self._agreed: set[int] = set()
        """Programs in which the engine without a fault agrees with the model."""

    def showing(self, fault: str, break_it: Break) -> int | None:
        """Return a program in which the model objects to the engine with this fault."""
        if break_it not in self._shown:
            with pytest.MonkeyPatch.context() as patch:
                break_it(patch)
                order = dict.fromkeys([*self._hints[fault], *self._seeds])
                found = next((seed for seed in order if self._run(seed) is Verdict.DISAGREE), None)
            self._shown[break_it] = found
            if found is not None:
                self._hints[fault].append(found)
                self._seeds.remove(found)
                self._seeds.insert(0, found)
        return self._shown[break_it]

    def agree(self, seed: int) -> bool:
        """Return whether the model agrees in this program with the engine without a fault."""
        tries = 0
        while seed not in self._agreed and tries < TRIES:
            tries += 1
            verdict = self._run(seed)
            if verdict is Verdict.DISAGREE:
                return False
            if verdict is Verdict.AGREE:
                self._agreed.add(seed)
        return seed in self._agreed

    def _run(self, seed: int) -> Verdict:
        rng = random.Random(seed)
        pair = self._stores.pair()
        try:
            for _ in range(STEPS):
                pair.do(make_step(rng, pair))
            pair.finish()
        except TooSlow:
            return Verdict.SLOW
        except (AssertionError, StoreError, LookupError):  # KeyError: rows contradict each other
            return Verdict.DISAGREE
        return Verdict.AGREE


@pytest.fixture(scope="module")
def programs(
    servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Programs]]:
    folder = tmp_path_factory.mktemp("stores")
    hints: defaultdict[str, list[int]] = defaultdict(list)
    with ExitStack() as stack:
        yield {
            kind: Programs(
                stack.enter_context(Stores(kind, servers, folder / kind, CarefulPair)), hints
            )
            for kind in ENGINES
        }


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("kind", "fault", "break_it", "scout"), FAULTS)
def test_the_model_catches(
    kind: str, fault: str, break_it: Break, scout: Break | None, programs: dict[str, Programs]
) -> None:
    if scout is not None:
        programs[SCOUT].showing(fault, scout)
    seed = programs[kind].showing(fault, break_it)
    assert seed is not None, "no program shows it"
    # It is the fault that the model objects to, and not what it thinks of every engine.
    assert programs[kind].agree(seed)
