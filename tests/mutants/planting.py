"""How a fault is planted: a guard taken away, or a value changed, as a careless change would.

A fault names what it changes, so a text that is no longer there fails loudly instead of proving
nothing.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from fairlane import engines
from fairlane.core import machine, reruns
from fairlane.core.machine import Move
from fairlane.engines import files, redis
from fairlane.engines.redis import scripts

Break = Callable[[pytest.MonkeyPatch], None]


def replaced(owner: Any, name: str, fake: Any) -> Break:
    """A function or method that does something else."""

    def break_it(patch: pytest.MonkeyPatch) -> None:
        assert hasattr(owner, name)
        patch.setattr(owner, name, fake)

    return break_it


def together(*breaks: Break) -> Break:
    def break_them(patch: pytest.MonkeyPatch) -> None:
        for each in breaks:
            each(patch)

    return break_them


def statement(module: Any, name: str, old: str, new: str) -> Break:
    """One statement with some of its text replaced."""

    def break_it(patch: pytest.MonkeyPatch) -> None:
        patch.setitem(module.SQL, name, _changed(module.SQL[name], old, new, name))

    return break_it


def assembled(module: Any, names: tuple[str, ...], old: str, new: str) -> Break:
    """The same for statements that were assembled from parts when their module was loaded."""

    def break_it(patch: pytest.MonkeyPatch) -> None:
        for name in names:
            patch.setattr(module, name, _changed(getattr(module, name), old, new, name))

    return break_it


def lua(path: str, old: str, new: str) -> Break:
    """A file of the Redis engine's `lua` with some of its text replaced, in every script."""

    def break_it(patch: pytest.MonkeyPatch) -> None:
        read = files.text

        def read_changed(package: str, file: str) -> str:
            text = read(package, file)
            return _changed(text, old, new, path) if file == f"lua/{path}.lua" else text

        patch.setattr(scripts, "text", read_changed)
        _assemble_again(patch)

    return break_it


def move(alter: Callable[[Move], Move]) -> Break:
    """Moves that are made otherwise: from now on, and those that were made when Fairlane was
    loaded, wherever a module has one."""

    def break_it(patch: pytest.MonkeyPatch) -> None:
        make = machine._move
        patch.setattr(machine, "_move", lambda *args, **options: alter(make(*args, **options)))
        for module in _ENGINES:
            for name, value in list(vars(module).items()):
                if isinstance(value, Move):
                    patch.setattr(module, name, alter(value))
        for name, value in scripts._MOVES.items():
            patch.setitem(scripts._MOVES, name, alter(value))
        _assemble_again(patch)

    return break_it


def _changed(text: str, old: str, new: str, name: str) -> str:
    assert old in text, f"{name} no longer says {old!r}"
    return text.replace(old, new)


def _assemble_again(patch: pytest.MonkeyPatch) -> None:
    """Make the scripts of the Redis engine from what there is now."""
    for module in _REDIS:
        for name, value in list(vars(module).items()):
            if isinstance(value, scripts.Script):
                patch.setattr(module, name, scripts.script(value.name))


def _modules(package: ModuleType) -> list[ModuleType]:
    found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return [import_module(module.name) for module in found]


# Loaded before any fault is planted: a module that is loaded later would keep it.
_ENGINES, _REDIS = [*_modules(engines), reruns], _modules(redis)
