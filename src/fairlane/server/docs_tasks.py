"""The section of `/docs` about the application's own tasks: what workers have published.

Everything in it is data from workers. It is shown as text, cut if it is long, and quoted in
commands: somebody may paste them.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any, Final

from fairlane.core.definitions import Definition, Template
from fairlane.core.json_schema import list_in, object_in
from fairlane.core.priority import shown_as
from fairlane.core.submission import new_task
from fairlane.server.schema_examples import example_of, json_of, words_of

SECTION: Final = "application"
"""The id of the section."""
SHOWN: Final = 100
"""How many tasks the page shows."""
_SECTION_CHARACTERS: Final = 256 * 1024
"""After this much, no further task is shown."""
_PARAMETERS: Final = 50
_DESCRIPTION: Final = 1_000
_EXAMPLE: Final = 2_000

_HOST: Final = re.compile(rb"[A-Za-z0-9.:\[\]-]{1,255}")
_HERE: Final = b"127.0.0.1:8000"

NOTHING: Final = "No worker has published a task yet: a worker does so when it starts."
BOUND: Final = (
    "This token is bound, and may read one definition at a time: "
    "<code>GET /api/v1/definitions/{type}</code>."
)
AWAY: Final = "The store does not answer, so the tasks cannot be shown. Load the page again later."


def address_of(headers: Mapping[bytes, bytes], *, secure: bool, root: str) -> str:
    """Return the address of this server as the client knows it."""
    host = headers.get(b"host", b"")
    known = host if _HOST.fullmatch(host) else _HERE
    return f"{'https' if secure else 'http'}://{known.decode()}{root}"


def note(text: str) -> str:
    """Return the section with a sentence in place of tasks. `text` is HTML."""
    return f'<h2 id="{SECTION}">Tasks of the application</h2><p class="dim">{text}</p>'


def section(templates: Iterable[Template], types: int, address: str, *, token: bool) -> str:
    """Return the section with these tasks, of so many that there are. `token`: requests need
    one."""
    found = [each.definition for each in templates if each.definition is not None]
    if not found:
        return note(NOTHING)
    parts: list[str] = []
    size = 0
    for definition in found:
        entry = _entry(definition, address, token=token)
        size += len(entry)
        if parts and size > _SECTION_CHARACTERS:
            break
        parts.append(entry)
    about = (
        "Published by workers. <code>GET /api/v1/definitions</code> has them for programs, with "
        "the whole schemas."
    )
    more = ""
    if types > len(parts):
        more = (
            f'<p class="dim">{types - len(parts):,} more are not shown here: '
            "<code>GET /api/v1/definitions</code> lists all of them.</p>"
        )
    return note(about) + "".join(parts) + more


def _entry(definition: Definition, address: str, *, token: bool) -> str:
    description = definition.description[:_DESCRIPTION]
    cut = "…" if len(definition.description) > len(description) else ""
    first, _, rest = description.partition("\n")
    return (
        f"<details><summary><code>{escape(definition.type)}</code>"
        f"<span>{escape(first)}{cut if not rest else ''}</span></summary>"
        f"{_paragraphs(rest + cut) if rest else ''}{_defaults(definition)}"
        f"{_parameters(definition.parameters)}"
        f"<pre>{escape(_curl(definition, address, token=token))}</pre></details>"
    )


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{escape(part)}</p>" for part in re.split(r"\n\s*\n", text.strip()))


def _defaults(definition: Definition) -> str:
    """Return what a submission gets that says nothing else."""
    options = definition.defaults()
    options.pop("unique", None)  # depends on the payload
    task = new_task(definition.type, b"{}", **options)
    timeout = "none" if task.timeout is None else f"{task.timeout:g} s"
    return _list(
        ("queue", task.queue),
        ("priority", shown_as(task.level)),
        ("retries", task.max_retries),
        ("timeout", timeout),
    )


def _list(*pairs: tuple[str, object]) -> str:
    shown = " · ".join(f"{name} <code>{escape(str(value))}</code>" for name, value in pairs)
    return f"<p>Defaults: {shown}</p>"


def _parameters(schema: Any) -> str:
    if schema is None:
        return '<p class="dim">The parameters are not described.</p>'
    properties = object_in(schema, "properties")
    required = list_in(schema, "required")
    rows = [
        _row(name, properties[name], required=name in required)
        for name in list(properties)[:_PARAMETERS]
    ]
    if len(properties) > _PARAMETERS:
        rows.append(f"<tr><td>and {len(properties) - _PARAMETERS:,} more</td></tr>")
    if schema.get("additionalProperties", True) is not False:
        rows.append('<tr><td class="dim">other names</td><td></td><td></td></tr>')
    if not rows:
        return '<p class="dim">It takes no parameters.</p>'
    head = "<tr><th>Parameter</th><th>Type</th><th>Default</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>"


def _row(name: str, schema: Any, *, required: bool) -> str:
    default = "required" if required else ""
    if not required and isinstance(schema, dict) and "default" in schema:
        default = f"<code>{escape(json_of(schema['default']))}</code>"
    return (
        f"<tr><td><code>{escape(name[:_DESCRIPTION])}</code></td>"
        f"<td><code>{escape(words_of(schema))}</code></td><td>{default}</td></tr>"
    )


def _curl(definition: Definition, address: str, *, token: bool) -> str:
    body = _body(definition.type, example_of(definition.parameters))
    if len(body) > _EXAMPLE:
        body = _body(definition.type, {})
    lines: Iterable[str] = (
        f"curl -X POST {address}/api/v1/tasks",
        *(['-H "Authorization: Bearer $FAIRLANE_TOKEN"'] if token else []),
        f"-H 'Content-Type: application/json' -d {shlex.quote(body)}",
    )
    return " \\\n  ".join(lines)


def _body(type: str, parameters: Mapping[str, Any]) -> str:
    # ASCII alone: no character can change what the rest of the command looks like.
    return json.dumps({"task_type": type, "parameters": parameters})
