"""The model catches every faulty engine: a suite that lets one pass proves nothing."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.conftest import Servers
from tests.model.driving import TooSlow
from tests.model.stores import Stores
from tests.model.test_differential import make_step
from tests.mutants.faults import FAULTS

PROGRAMS, STEPS = 600, 100
"""A fault that so many random programs of so many steps do not show is not caught."""


def disagreement(stores: Stores, seed: int) -> str | None:
    """What the model objects to in a random program; None if nothing, or nothing can be told."""
    rng = random.Random(seed)
    pair = stores.pair()
    try:
        for _ in range(STEPS):
            pair.do(make_step(rng, pair))
        pair.finish()
    except TooSlow:
        return None
    except AssertionError as error:
        return str(error)
    return None


@pytest.mark.timeout(900)
@pytest.mark.parametrize("fault", FAULTS)
def test_the_model_catches(
    fault: str, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Stores("sqlite-memory", servers, tmp_path) as stores:
        with monkeypatch.context() as patch:
            FAULTS[fault](patch)
            shown = next((seed for seed in range(PROGRAMS) if disagreement(stores, seed)), None)
        assert shown is not None, f"no program shows that {fault}"
        # It is the fault that it objects to, and not what it thinks of every engine.
        assert disagreement(stores, shown) is None
