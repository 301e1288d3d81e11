"""Record changes from the command line in the store's audit log."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Any

from fairlane.cli.errors import print_error
from fairlane.core.audit import Action, NewAudit
from fairlane.core.errors import FairlaneError

if TYPE_CHECKING:
    from fairlane.client.app import Fairlane


def record(app: Fairlane, action: Action, subject: str = "", **detail: Any) -> None:
    """Record a change that was made. If this fails, the change stays. A server records its own."""
    if app.backend.driver.remote:
        return
    given = {name: value for name, value in detail.items() if value is not None}
    entry = NewAudit.of(f"cli:{_user()}", action, subject, given)
    try:
        app.run_sync(app.backend.ops.record([entry]))
    except FairlaneError as error:
        print_error(f"It was done, but could not be recorded in the audit log: {error.message}")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        return "unknown"
