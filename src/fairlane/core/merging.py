"""Inputs are added to a payload: the results of a task's parents, byte for byte.

The result of a parent that did not complete, which only a task with `on_parent_failure="continue"`
gets to see, has a form of its own:

    {"$failed":{"task_id":"…","state":"failed","code":"OUT_OF_STOCK","message":"…"}}

No result in this form is ever passed on as one, so it cannot be mistaken. In a payload it means
nothing: a parameter is in the payload or an input.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from fairlane.core import limits
from fairlane.core.compression import check_expanded
from fairlane.core.errors import InputMissing, InputsTooLarge, ResultDamaged, SealBroken
from fairlane.core.inputs import RESULT, Input, spliced
from fairlane.core.model import Spec, Task, TaskError
from fairlane.core.raw_json import items_of, members_of
from fairlane.core.sealing import check_open
from fairlane.core.states import State
from fairlane.core.text import shown, storable


class Failed(msgspec.Struct, frozen=True):
    """Stands for the result of a task that did not complete.

    A handler whose parameter may be `Failed` gets it in place of the result.
    """

    task_id: str
    state: State
    code: str | None
    """The code of the task's error, if it has one."""
    message: str


class NodeOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a task of a workflow, as the task that runs at the end gets it.

    `state` is None if the task was deleted. `omitted`: its result has more than 64 KiB, and can be
    read with `app.result(task_id)`.
    """

    node: str
    task_id: str
    state: State | None
    result: Any = None
    error: str | None = None
    """The message of its error."""
    code: str | None = None
    """The code of its error, if it has one."""
    omitted: bool = False

    @property
    def completed(self) -> bool:
        """Return whether the task completed."""
        return self.state is State.COMPLETED


class ParentResult(msgspec.Struct, frozen=True, gc=False):
    """What became of a parent: what is needed of it, and no more."""

    state: State
    result: bytes | None
    error: TaskError | None
    node: str | None = None
    """Its name in its workflow."""

    @classmethod
    def of(cls, task: Task) -> ParentResult:
        """Return what became of a task."""
        node = None if task.membership is None else task.membership.node
        return cls(task.state, task.result, task.error, node)

    @property
    def size(self) -> int:
        """Return how many bytes the result has."""
        return 0 if self.result is None else len(self.result)


def wanted(spec: Spec) -> list[str]:
    """Return the ids of the parents whose results a task takes, each once."""
    places = (place for each in spec.inputs.values() for place in each.parents)
    return [spec.depends_on[place] for place in dict.fromkeys(places)]


def parted(payload: bytes, names: Iterable[str]) -> tuple[bytes, dict[str, bytes]]:
    """Return a payload without its inputs, and the inputs: the reverse of `merged`."""
    members = members_of(payload)
    inputs = {name: members.pop(name) for name in names if name in members}
    return (spliced(b"{}", members), inputs) if inputs else (payload, inputs)


def merged(payload: bytes, spec: Spec, results: Mapping[str, ParentResult]) -> bytes:
    """Return a payload with its inputs. `results`: by the ids of the parents.

    Raises InputMissing or InputsTooLarge if that is not possible; KeyMissing, or DriverMissing, if
    a result cannot be read here.
    """
    arguments: dict[str, bytes] = {}
    room = limits.INPUT_BYTES
    for name, each in spec.inputs.items():
        values: list[bytes] = []
        for place in each.parents:
            parent = spec.depends_on[place]
            found = results.get(parent)
            if each.outcomes:
                value = _outcome(name, parent, found)
            else:
                value = _value(name, each, parent, found, tolerant=spec.tolerant)
            room -= len(value)
            if room < 0:
                raise too_large()
            values.append(value)
        arguments[name] = _array(values, each.nesting) if each.many else values[0]
    return spliced(payload, arguments)


def _array(values: Sequence[bytes], nesting: Sequence[int]) -> bytes:
    """Return results as a JSON array, with arrays in it as the nesting says."""
    if not nesting:
        return b"[%b]" % b",".join(values)
    rest, sizes = iter(values), iter(nesting)

    def element(size: int) -> bytes:
        if size == RESULT:
            return next(rest)
        return b"[%b]" % b",".join([element(next(sizes)) for _ in range(size)])

    return b"[%b]" % b",".join([element(size) for size in sizes])


def too_large() -> InputsTooLarge:
    """Return the error for results that are too large together."""
    return InputsTooLarge(
        f"The results that this task takes have more than {limits.INPUT_BYTES:,} bytes together: "
        "gather them in steps, or let the tasks return references to what they have stored "
        "elsewhere."
    )


def failed_in(value: bytes) -> Failed | None:
    """Return what stands in a parameter in place of a result; None for results."""
    if not value.startswith(_OPENING):
        return None
    try:
        return _form_decoder.decode(value).failed
    except msgspec.MsgspecError:
        return None


class _Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    failed: Failed = msgspec.field(name="$failed")


_OPENING: Final = b'{"$failed":'
_form_decoder: Final = msgspec.json.Decoder(_Form)


def _value(
    name: str, given: Input, parent: str, found: ParentResult | None, *, tolerant: bool
) -> bytes:
    """Return what one parent contributes to a parameter, as JSON."""
    if found is None:
        raise _missing(name, parent, "which was deleted: submit both tasks again")
    if found.state is not State.COMPLETED:
        if not tolerant:
            raise _missing(name, parent, f"which is {found.state}: replay that task first")
        return _failure(parent, found)
    result = _checked_result(name, parent, b"null" if found.result is None else found.result)
    value = _part(name, parent, result, given.path)
    if failed_in(value) is not None:
        raise _missing(name, parent, 'which has the reserved form {"$failed": …}: wrap it')
    return value


def _checked_result(name: str, parent: str, result: bytes) -> bytes:
    """Return a result that can be read."""
    try:
        check_open(result)
        check_expanded(result)
    except (SealBroken, ResultDamaged) as error:
        raise _missing(name, parent, f"which cannot be read. {error.message}", end="") from None
    return result


def _outcome(name: str, parent: str, found: ParentResult | None) -> bytes:
    """Return what became of a parent, as JSON."""
    if found is None:
        gone = NodeOutcome(node=parent, task_id=parent, state=None, error="It was deleted.")
        return msgspec.json.encode(gone)
    result, omitted = found.result, found.size > limits.OUTCOME_BYTES
    if result is not None and not omitted:
        result = _checked_result(name, parent, result)
    error = found.error
    return msgspec.json.encode(
        NodeOutcome(
            node=found.node or parent,
            task_id=parent,
            state=found.state,
            result=None if result is None or omitted else msgspec.Raw(result),
            error=None if error is None else storable(error.message, limits.FAILED_CHARACTERS),
            code=None if error is None else error.code,
            omitted=omitted,
        )
    )


def _failure(parent: str, found: ParentResult) -> bytes:
    error = found.error
    message = f"Task {parent} is {found.state}." if error is None else error.message
    failed = Failed(
        parent,
        found.state,
        None if error is None else error.code,
        storable(message, limits.FAILED_CHARACTERS),
    )
    return msgspec.json.encode(_Form(failed))


def _part(name: str, parent: str, result: bytes, path: tuple[str | int, ...]) -> bytes:
    """Return a part of a result, byte for byte."""
    value = result
    for step in path:
        try:
            value = members_of(value)[step] if isinstance(step, str) else items_of(value)[step]
        except (KeyError, IndexError, msgspec.MsgspecError):
            way = shown("/".join(map(str, path)))
            raise _missing(name, parent, f"which has no part {way}") from None
    return value


def _missing(name: str, parent: str, why: str, end: str = ".") -> InputMissing:
    return InputMissing(
        f"The parameter {shown(name)} is the result of task {parent}, {why}{end}",
        parameter=name,
        parent=parent,
    )
