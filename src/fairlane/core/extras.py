"""Libraries that come with an extra of the package: import what needs them, or say how to install
them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Final

from fairlane.core.errors import DriverMissing

EXTRA_OF: Final = {
    "asyncpg": "postgres",
    "boto3": "s3",
    "cryptography": "encryption",
    "opentelemetry": "otel",
    "psycopg": "postgres",
    "redis": "redis",
    "uvloop": "server",
    "zstandard": "compression",
}
"""What each library comes with."""


def import_extra(module: str, extra: str, what: str) -> ModuleType:
    """Import a module that needs the packages of an extra. Raise DriverMissing without them.

    `what` names what is missing: "The driver for redis://".
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("fairlane"):
            raise  # a mistake of ours: installing something would not help
        raise missing_extra(f"{what} is not installed", extra) from None


def missing_extra(what: str, extra: str) -> DriverMissing:
    """Return the error that says what is missing, and the command that installs it."""
    return DriverMissing(f"{what}: {command_for(extra)}.")


def command_for(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install 'fairlane[{extra}]'"
