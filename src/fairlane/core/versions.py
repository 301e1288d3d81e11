"""The version of a store against the version this Fairlane knows."""

from __future__ import annotations

from fairlane.core.errors import SchemaMissing, SchemaTooNew, SchemaTooOld


def check_ready(found: int, known: int) -> None:
    """Raise what keeps the store from being used, if anything does. Zero: nothing is there yet."""
    check_not_newer(found, known)
    if found == 0:
        raise SchemaMissing
    if found < known:
        raise SchemaTooOld(
            f"The store has schema version {found}, this Fairlane needs {known}: "
            "run `fairlane migrate`."
        )


def check_not_newer(found: int, known: int) -> None:
    """Raise if the store was written by a newer Fairlane: nothing of it may be touched."""
    if found > known:
        raise SchemaTooNew(
            f"The store has schema version {found}, this Fairlane knows {known}: upgrade Fairlane."
        )
