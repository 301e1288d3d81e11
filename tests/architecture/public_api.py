"""The public API as text: every name of `fairlane.__all__` with its signature.

`python -m tests.architecture.public_api` prints it; `--write` keeps it as the one agreed on.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import fairlane

SNAPSHOT = Path(__file__).with_name("public_api.txt")


def describe() -> str:
    lines: list[str] = []
    for name in sorted(fairlane.__all__):
        value = getattr(fairlane, name)
        if inspect.isclass(value):
            lines += describe_class(name, value)
        elif inspect.isroutine(value):
            lines.append(f"def {name}{signature(value)}")
        else:
            lines.append(f"{name}: {type(value).__name__}")
    return "\n".join(lines) + "\n"


def describe_class(name: str, cls: type) -> Iterator[str]:
    bases = ", ".join(base.__qualname__ for base in cls.__bases__)
    yield f"class {name}({bases}){signature(cls)}"
    # Only what our own classes add: what an Exception or a Struct has is not ours to promise.
    added = [c for c in reversed(cls.__mro__) if ours(c) and c not in public_bases(cls)]
    own = {k: v for c in added for k, v in vars(c).items()}
    for member, value in sorted(own.items()):
        if member.startswith("_"):
            continue
        if isinstance(value, property):
            yield f"    {member}: property"
        elif isinstance(value, staticmethod | classmethod) or inspect.isroutine(value):
            yield f"    def {member}{signature(getattr(cls, member))}"
        else:
            yield f"    {member}"


def public_bases(cls: type) -> set[type]:
    """Classes whose members are described under another public name."""
    public = [getattr(fairlane, name) for name in fairlane.__all__]
    return {base for c in cls.__mro__[1:] if c in public for base in c.__mro__}


def ours(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == "fairlane"


def signature(value: object) -> str:
    try:
        text = str(inspect.signature(value))  # type: ignore[arg-type]
    except (
        TypeError,
        ValueError,
    ):  # built in C, such as an exception without an __init__ of its own
        return "(...)"
    return re.sub(r"frozenset\(\{(.*?)\}\)", in_order, text)


def in_order(members: re.Match[str]) -> str:
    """A set's members come in another order every time."""
    return "frozenset({" + ", ".join(sorted(members[1].split(", "))) + "})"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        SNAPSHOT.write_text(describe())
    else:
        sys.stdout.write(describe())
