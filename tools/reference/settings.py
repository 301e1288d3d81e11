"""docs/reference/settings.md: flags, variables and the file, from `cli/settings.py`."""

from __future__ import annotations

import re
from typing import Any, Final

import click

from fairlane.cli.main import fairlane
from fairlane.cli.setting_values import FILE
from fairlane.cli.settings import DEFAULT_STORE, PREFIX, Settings
from fairlane.handlers import settings as handlers
from tools.reference.code import attribute_docs
from tools.reference.markdown import code, page, table

_ABOUT: Final = {
    "encryption_keys": "Keys that encrypt payloads and results, `id:base64`; the first one "
    "encrypts. See [Encrypt](../howto/encrypt.md).",
    "encryption_key_file": "A file with such keys.",
    "token": "The access token for a store that is a server.",
    "token_file": "A file with that token.",
    "FAIRLANE_SMTP_HOST": "The mail server. Without it there is no `email` task.",
    "FAIRLANE_SMTP_SECURITY": "`starttls`, `tls` or `none`.",
    "FAIRLANE_SMTP_USERNAME": "For the mail server, with a password; never without encryption.",
    "FAIRLANE_SMTP_PASSWORD": "See above.",
    "FAIRLANE_SMTP_TIMEOUT": "Seconds for one message.",
    "FAIRLANE_SMTP_CA_FILE": "Certificate authorities to trust instead of the system's.",
}
_COMMANDS: Final = ("worker", "server", "up")


def render() -> str:
    """Return the page."""
    flags = _flags()
    return page(
        "Settings",
        f"Of the command line. A flag wins over a variable, and a variable over `{FILE}` in the "
        f'working folder, which has the name in the first column: `store = "sqlite:///tasks.db"`. '
        "Lists are `a,b` in flags and variables.",
        table(
            (f"in {FILE}", "variable", "flag", "of the commands", "default", "meaning"),
            [_row(name, flags.get(name, {})) for name in Settings._fields],
        ),
        "## Built-in handlers",
        "Variables only: they come from the operator of a worker, never from a payload.",
        table(("variable", "default", "meaning"), _handler_rows()),
    )


def _flags() -> dict[str, dict[str, str]]:
    """Return for each setting the help texts of its flag, by command."""
    found: dict[str, dict[str, str]] = {}
    context = click.Context(fairlane)
    for name in _COMMANDS:
        command = fairlane.get_command(context, name)
        for parameter in [] if command is None else command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                found.setdefault(str(parameter.name), {})[name] = parameter.help or ""
    return found


def _row(name: str, flags: dict[str, str]) -> tuple[str, ...]:
    own = attribute_docs(Settings)
    first = next(iter(flags.values()), "")
    meaning = _ABOUT.get(name) or re.sub(r" *\[default: .*\]", "", first) or own[name]
    flag = f"--{name.replace('_', '-')}" if flags else ""
    commands = "most" if name == "store" else ", ".join(flags)
    default = DEFAULT_STORE if name == "store" else _shown(Settings._field_defaults[name])
    return (code(name), code(PREFIX + name.upper()), code(flag), commands, code(default), meaning)


def _shown(value: object) -> str:
    if value is None or value == () or value == frozenset():
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)


class _Asked(dict[str, str]):
    """An environment that notes which variables are read."""

    def __init__(self, given: dict[str, str]) -> None:
        super().__init__(given)
        self.names: list[str] = []

    def get(self, name: str, default: Any = None) -> Any:
        if name not in self.names:
            self.names.append(name)
        return super().get(name, default)


def _handler_rows() -> list[tuple[str, ...]]:
    environ = _Asked({"FAIRLANE_SMTP_HOST": "localhost", "FAIRLANE_SMTP_SENDER": "a@example.com"})
    handlers.Settings.from_environment(environ)
    rows: list[tuple[str, ...]] = []
    for name in environ.names:
        kind = handlers.WebhookSettings if "WEBHOOK" in name else handlers.MailSettings
        field = name.split("_", 2)[2].lower()
        fields = dict(
            zip(kind.__struct_fields__[::-1], kind.__struct_defaults__[::-1], strict=False)
        )
        meaning = _ABOUT.get(name) or attribute_docs(kind)[field]
        rows.append((code(name), code(_shown(fields.get(field))), meaning))
    return rows
