"""An engine's operations with large results compressed on their way in.

All other operations are the engine's own: what is forgotten here costs nothing but space.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

from msgspec.structs import replace

from fairlane.core.compression import is_compressed, stored_form
from fairlane.core.flow import Op
from fairlane.core.outcomes import Completed
from fairlane.core.settlement import Settled, Settlement
from fairlane.core.store import Operations
from fairlane.core.submission import same_payload
from fairlane.engines.compression.driver import compress


def compressing_operations(ops: Operations, above: int) -> Operations:
    """The same operations for a store that is to hold results above a size compressed."""
    return cast(Operations, _CompressingOperations(ops, above))


class _CompressingOperations:
    def __init__(self, ops: Operations, above: int) -> None:
        self._ops = ops
        self._above = above

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ops, name)

    def settle(
        self, settlements: Sequence[Settlement], *, reaping: bool = False
    ) -> Op[list[Settled]]:
        return self._ops.settle([self._compressed(each) for each in settlements], reaping=reaping)

    def _compressed(self, settlement: Settlement) -> Settlement:
        outcome = settlement.outcome
        if not isinstance(outcome, Completed) or len(outcome.result) <= self._above:
            return settlement
        result = stored_form(compress(outcome.result))
        if len(result) >= len(outcome.result) and not is_compressed(outcome.result):
            return settlement
        matches = partial(same_payload, outcome.result)
        return replace(settlement, outcome=Completed(result), matches=matches)
