"""A library that is missing is named in one sentence, with the command that installs it."""

import sys

import pytest

from fairlane.core.errors import DriverMissing
from fairlane.core.extras import import_extra


def test_a_module_that_can_be_imported() -> None:
    assert import_extra("fairlane.core.states", "redis", "Nothing").__name__.endswith("states")


def test_a_missing_library_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "somebodys_library", None)
    with pytest.raises(DriverMissing) as error:
        import_extra("somebodys_library", "redis", "The driver for redis://")
    expected = "The driver for redis:// is not installed: pip install 'fairlane[redis]'."
    assert error.value.message == expected


@pytest.mark.parametrize("name", ["fairlane.core.nowhere", "fairlane.nowhere.at_all"])
def test_a_module_of_fairlane_that_is_missing_is_no_matter_of_extras(name: str) -> None:
    with pytest.raises(ModuleNotFoundError):
        import_extra(name, "redis", "The driver for redis://")


def test_an_error_that_names_no_module(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: str) -> None:
        raise ModuleNotFoundError("no name")

    monkeypatch.setattr("fairlane.core.extras.import_module", fail)
    with pytest.raises(ModuleNotFoundError, match="no name"):
        import_extra("redis", "redis", "The driver for redis://")
