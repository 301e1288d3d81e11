"""The model catches every faulty engine: a suite that lets one pass proves nothing."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.conftest import Servers
from tests.model import profile
from tests.model.driving import TooSlow
from tests.model.stores import Stores
from tests.model.test_differential import make_step
from tests.mutants.faults import FAULTS

PROGRAMS = 300
"""A fault that so many random programs do not show is not caught."""


def first_disagreement(servers: Servers, folder: Path) -> str | None:
    """What the model objects to, over random programs; None when it never does."""
    with Stores("sqlite-memory", servers, folder) as stores:
        for seed in range(PROGRAMS):
            rng = random.Random(seed)
            pair = stores.pair()
            try:
                for _ in range(profile.STEPS):
                    pair.do(make_step(rng, pair))
                pair.finish()
            except TooSlow:
                continue
            except AssertionError as error:
                return f"program {seed}: {error}"
    return None


@pytest.mark.timeout(900)
@pytest.mark.parametrize("fault", FAULTS)
def test_the_model_catches(
    fault: str, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FAULTS[fault](monkeypatch)
    assert first_disagreement(servers, tmp_path), f"no program shows that {fault}"
