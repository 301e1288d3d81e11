"""The public API changes only on purpose."""

from tests.architecture.public_api import SNAPSHOT, describe, describe_class


def test_public_api_is_the_one_agreed_on() -> None:
    """After a change you meant: python -m tests.architecture.public_api --write"""
    assert describe() == SNAPSHOT.read_text()


def test_signatures_are_part_of_it() -> None:
    class Example:
        __module__ = "fairlane.example"

        def run(self, times: int = 1) -> None: ...

        @property
        def name(self) -> str:
            return ""

        def _hidden(self) -> None: ...

    assert list(describe_class("Example", Example)) == [
        "class Example(object)()",
        "    name: property",
        "    def run(self, times: int = 1) -> None",
    ]
