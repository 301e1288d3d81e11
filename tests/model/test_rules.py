"""Every engine against the reference model: random steps, compared after each."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from tests.conftest import Servers
from tests.fixtures.stores import KINDS
from tests.model import profile, programs
from tests.model.driving import Pair, TooSlow
from tests.model.programs import Choices
from tests.model.stores import Stores


class Rules(RuleBasedStateMachine):
    """The steps of a program, chosen one by one."""

    stores: Stores[Pair]
    """Set by whoever runs it."""

    def __init__(self) -> None:
        super().__init__()
        self._slow = False
        self._pair: Pair = self.stores.pair()

    def do(self, data: st.DataObject, make: Callable[..., programs.Do], *args: Any) -> None:
        choices = Choices(lambda options: data.draw(st.sampled_from(options)))
        step = make(choices, *args)
        try:
            self._pair.do(step)
        except TooSlow:
            self._slow = True

    def teardown(self) -> None:
        if not self._slow:
            with suppress(TooSlow):
                self._pair.finish()
        self.stores.count(self._pair)

    @rule(data=st.data())
    @precondition(lambda self: not self._slow)
    def submit(self, data: st.DataObject) -> None:
        self.do(data, programs.submit, self._pair.ids, self._pair.absolute)


def _add_rules() -> None:
    for make, weight in programs.STEPS:
        for number in range(weight):

            def step(self: Rules, data: st.DataObject, make: Any = make) -> None:
                self.do(data, make)

            step.__name__ = f"{make.__name__}_{number}" if number else make.__name__
            guarded = precondition(lambda self: not self._slow)(step)
            setattr(Rules, step.__name__, rule(data=st.data())(guarded))


_add_rules()


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("kind", KINDS)
def test_the_model_agrees(kind: str, servers: Servers, tmp_path: Path) -> None:
    with Stores(kind, servers, tmp_path, Pair) as stores:
        machine = type("Machine", (Rules,), {"stores": stores})
        run_state_machine_as_test(machine, settings=profile.settings_for(kind))
        profile.report(f"{kind}: {stores.examples} programs, {stores.steps} steps compared")
        assert stores.steps > 0
