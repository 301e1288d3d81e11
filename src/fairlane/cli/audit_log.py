"""What is changed from the command line is told in the store's audit log."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Any

from fairlane.cli.errors import print_error
from fairlane.core.audit import Action, NewAudit
from fairlane.core.errors import FairlaneError

if TYPE_CHECKING:
    from fairlane.client.app import Fairlane


def record(app: Fairlane, action: Action, subject: str = "", **detail: Any) -> None:
    """Tell of something that was done. That this fails does not undo it. A server tells itself."""
    if app.backend.driver.remote:
        return
    given = {name: value for name, value in detail.items() if value is not None}
    entry = NewAudit.of(f"cli:{_user()}", action, subject, given)
    try:
        app.run_sync(app.backend.ops.record([entry]))
    except FairlaneError as error:
        print_error(f"It was done, but could not be told in the audit log: {error.message}")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user who has a number only
        return "unknown"
