"""Check whether a store holds what its encryption promises."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairlane import engines
from fairlane.cli.checks import Check, CheckStatus
from fairlane.core import encryption
from fairlane.core.backend import Backend
from fairlane.core.encryption import Encryption
from fairlane.core.filters import EVERYTHING
from fairlane.core.model import Task
from fairlane.core.sealing import Key, is_sealed

SAMPLE = 100
"""How many of the newest tasks are looked at."""


async def check_encryption(backend: Backend, url: str, keys: Sequence[Key]) -> list[Check]:
    """Compare the keys of this process, what the store says, and what it holds.

    A server encrypts with keys of its own, of which nobody learns over HTTP.
    """
    if backend.driver.remote:
        return []
    said = await backend.run(backend.ops.encryption())
    if not keys and said is Encryption.UNDECIDED:
        return []
    checks = list(_compare(keys, said))
    # Without keys, because these would not tell what is encrypted from what is not.
    bare = engines.open(url)
    try:
        tasks = (await bare.run(bare.ops.page(EVERYTHING, SAMPLE))).tasks
    finally:
        await bare.driver.aclose()
    plain = sum(map(_is_plain, tasks))
    if plain:
        message = (
            f"{plain:,} of the newest {len(tasks):,} tasks have a payload or result in plain text: "
            "they were stored before the store required encryption, or while it did not."
        )
        checks.append(Check("encryption", CheckStatus.WARNING, message))
    return checks


def _is_plain(task: Task) -> bool:
    return not is_sealed(task.payload) or encryption.has_plain_result([task.result])


def _compare(keys: Sequence[Key], said: Encryption) -> Iterator[Check]:
    if not keys:
        if said is Encryption.REQUIRED:
            message = (
                "The store requires encryption, and there are no keys here: this can only read."
            )
            yield Check("encryption", CheckStatus.WARNING, message)
        return
    first, *others = (key.id for key in keys)
    older = f"; what {', '.join(others)} sealed can be read" if others else ""
    message = f"Payloads and results are sealed with the key {first}{older}."
    yield Check("encryption", CheckStatus.OK, message)
    if said is not Encryption.REQUIRED:
        message = (
            f"It is {said}: the store accepts plain text from processes without keys. When all "
            "have them, run `fairlane encryption required`."
        )
        yield Check("encryption", CheckStatus.WARNING, message)
