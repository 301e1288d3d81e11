"""Faults of reruns, in the engines that ask the core what each of them leads to."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType

from fairlane.core import reruns
from fairlane.core.dependencies import Dependency, dependency_on, dependency_on_all
from fairlane.core.machine import Move
from fairlane.core.reruns import Rerun, move_of
from fairlane.core.states import State
from tests.mutants.planting import Break, replaced


def faults_of(engine: ModuleType) -> dict[str, Break]:
    """Return the faults of an engine's module `reruns`."""
    return {
        "a cancelled child is revived although its parent failed": replaced(
            reruns, "dependency_on_all", _never_broken
        ),
        "a rebound child loses a bond": replaced(engine, "dependency_on", _met_if_queued),
        "a rerun does not look at the version": replaced(engine, "move_of", _of_any_version),
    }


def _never_broken(parents: Iterable[State | None], *, tolerant: bool) -> Dependency:
    del tolerant
    return dependency_on_all(parents, tolerant=True)


def _met_if_queued(parent: State, *, tolerant: bool) -> Dependency:
    if parent is State.QUEUED:
        return Dependency.MET
    return dependency_on(parent, tolerant=tolerant)


def _of_any_version(
    rerun: Rerun, state: State, _: int, parents: Iterable[State | None]
) -> Move | None:
    return move_of(rerun, state, rerun.version, parents)
