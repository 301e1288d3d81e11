"""How much is run: a minute an engine by default, RELIABILITY's quantities when asked."""

from __future__ import annotations

import os
import sys

from hypothesis import HealthCheck, Phase, settings

FULL = os.environ.get("FAIRLANE_TESTS") == "full"

# (programs, steps each) of the full profile.
_FULL = {"sqlite": (400, 60), "postgres": (150, 50), "redis": (300, 60), "valkey": (300, 60)}
_SHORT = {"sqlite": (150, 50), "postgres": (40, 50), "redis": (120, 50), "valkey": (120, 50)}

PROGRAMS = 200 if FULL else 12
STEPS = 50


def settings_for(kind: str) -> settings:
    """Settings for a store of this kind."""
    examples, steps = (_FULL if FULL else _SHORT)[kind.split("-", maxsplit=1)[0]]
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=not FULL,
        database=None,
        print_blob=True,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )


def report(text: str) -> None:
    """Said at the end of a run, where -s shows it."""
    sys.stdout.write(f"\n{text}\n")
