"""What a test expects of a submission, and how what was submitted differs from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from fairlane.core.dependencies import OnParentFailure
from fairlane.core.durations import in_seconds
from fairlane.core.errors import InvalidArguments
from fairlane.core.priority import level_of
from fairlane.runtime.task import Options, TaskFunction
from fairlane.runtime.tasks import Task
from fairlane.runtime.values import UNFIT, encoded

LISTED: Final = 20
"""How many tasks a message lists."""
_SHOWN_CHARACTERS: Final = 100
_SAME_TIME: Final = timedelta(milliseconds=1)

_ACTUAL: Final[Mapping[str, Callable[[Task], Any]]] = {
    "required_capabilities": lambda task: set(task.capabilities),
    "depends_on": lambda task: set(task.depends_on),
    "delay_seconds": lambda task: (task.run_at - task.created_at).total_seconds(),
    "on_parent_failure": lambda task: (
        OnParentFailure.CONTINUE if task.tolerant else OnParentFailure.CANCEL
    ),
}
"""How an option is read from a task, where the task has no field of that name."""

_EXPECTED: Final[Mapping[str, Callable[[Any], Any]]] = {
    "priority": level_of,
    "required_capabilities": set,
    "depends_on": set,
}
"""How an option is compared that can be said in several ways."""


class Expectation:
    """A call of a task: some of its arguments, and the options that were chosen for it."""

    def __init__(
        self, task: TaskFunction[..., Any], args: Sequence[Any], parameters: Mapping[str, Any]
    ) -> None:
        self.task = task
        misplaced = sorted(parameters.keys() & _OPTIONS - task.arguments.names)
        if misplaced and not task.arguments.takes_any:
            raise InvalidArguments(
                f"{task.name} has no parameter {misplaced[0]}. To expect the option, write "
                f"{task.name}.options({misplaced[0]}=…)."
            )
        self._parameters = task.arguments.some(args, parameters)
        self._options = {
            name: _EXPECTED.get(name, in_seconds)(value) for name, value in task.chosen.items()
        }
        if "unique" in self._options:
            raise InvalidArguments("A task does not keep the option unique: leave it out.")

    def __str__(self) -> str:
        options = f" with {_pairs(self.task.chosen)}" if self.task.chosen else ""
        return _call(self.task.name, self._parameters) + options

    def check_name(self, name: str, given: object, instead: str) -> None:
        """Raise InvalidArguments for a name that is both an argument of the assertion and a
        parameter of the task."""
        if given is not None and name in self.task.arguments.names:
            raise InvalidArguments(
                f"{self.task.name} has a parameter {name}: compare what {instead}() returns."
            )

    def differences(self, found: Task) -> list[str]:
        """Return how a task differs from what is expected; nothing if it does not."""
        if found.type != self.task.name:
            return [f"type is {found.type}"]
        arguments = self.task.arguments.call(found.stored.payload, found.inputs)
        return [
            f"{name} is {_short(arguments[name])}" if name in arguments else f"{name} is not given"
            for name, wanted in self._parameters.items()
            if name not in arguments or not _same(wanted, arguments[name])
        ] + [
            f"{name} is {_short(actual)}"
            for name, wanted in self._options.items()
            if not _same_option(name, wanted, actual := _actual(name, found))
        ]


_OPTIONS: Final = frozenset(Options.__annotations__)


def listed(everything: Iterable[Task], expected: Expectation) -> str:
    """Return all tasks as text: those of the expected type first, with what is different."""
    tasks = sorted(everything, key=lambda task: task.type != expected.task.name)
    if not tasks:
        return "Nothing was submitted."
    lines = [_line(task, expected) for task in tasks[:LISTED]]
    if len(tasks) > LISTED:
        lines.append(f"  and {len(tasks) - LISTED:,} more")
    return "\n".join(["These tasks were submitted:", *lines])


def _line(task: Task, expected: Expectation) -> str:
    if task.type != expected.task.name:
        payload = task.payload
        return f"  {_call(task.type, payload if isinstance(payload, Mapping) else {})}"
    different = expected.differences(task)
    call = _call(task.type, expected.task.arguments.call(task.stored.payload, task.inputs))
    return f"  {call}" + (f": {', '.join(different)}" if different else "")


def _call(name: str, arguments: Mapping[str, Any]) -> str:
    return f"{name}({_pairs(arguments)})"


def _pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_short(value)}" for name, value in values.items())


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _same(wanted: object, actual: object) -> bool:
    """Compare as Python does, and as JSON: a dict may stand for the dataclass it becomes."""
    if wanted == actual:
        return True
    try:
        return encoded(wanted) == encoded(actual)
    except UNFIT:
        return False  # such as `unittest.mock.ANY`, which has no JSON


def _actual(option: str, task: Task) -> Any:
    read = _ACTUAL.get(option)
    return getattr(task, option) if read is None else read(task)


def _same_option(option: str, wanted: Any, actual: Any) -> bool:
    if option == "tags":
        return bool(wanted.items() <= actual.items())
    if option == "delay_seconds":
        return bool(abs(wanted - actual) < _SAME_TIME.total_seconds())
    return bool(wanted == actual)
