"""The documentation of the API as one HTML page, made from the OpenAPI document.

The tasks of the application are in `docs_tasks`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from html import escape
from typing import Any, Final, NamedTuple

from fairlane.server.docs_tasks import SECTION
from fairlane.server.responses import GUARDS, Headers

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --dim: #666; --accent: #1d4ed8 }
@media (prefers-color-scheme: dark) { :root { --dim: #a3a3a3; --accent: #8fb0ff } }
* { box-sizing: border-box }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 60rem; padding: 1.5rem;
  overflow-wrap: anywhere }
h1 { margin: 0 } h2 { margin: 2.5rem 0 .5rem; border-bottom: 1px solid var(--line) }
a { color: var(--accent) } code, pre { font: .875em/1.5 ui-monospace, monospace }
pre { background: var(--soft); padding: .75rem; overflow-x: auto; border-radius: .375rem }
details { border: 1px solid var(--line); border-radius: .375rem; margin: .5rem 0; padding: 0 1rem }
summary { cursor: pointer; padding: .5rem 0; display: flex; gap: 0 .75rem; flex-wrap: wrap;
  align-items: baseline }
summary::before { content: "▸"; color: var(--dim); width: .75rem }
details[open] > summary::before { content: "▾" }
summary b { min-width: 4.5rem; color: var(--accent) } summary span { color: var(--dim) }
table { border-collapse: collapse; table-layout: fixed; width: 100%; margin: .5rem 0 1rem }
td, th { border-top: 1px solid var(--line); padding: .25rem .75rem .25rem 0; text-align: left;
  vertical-align: top } th { font-weight: 600 } .dim { color: var(--dim) }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin: 1rem 0 }
"""

_HASH: Final = b64encode(sha256(_STYLE.encode()).digest()).decode()
PAGE_GUARDS: Final[Headers] = tuple(
    (name, f"default-src 'none'; style-src 'sha256-{_HASH}'; frame-ancestors 'none'".encode())
    if name == b"content-security-policy"
    else (name, value)
    for name, value in GUARDS
)
"""The usual guards, which also allow the style sheet in the page."""


class Page(NamedTuple):
    """The page as HTML, in two parts: the section of tasks belongs between them."""

    before: bytes
    after: bytes


def page(document: dict[str, Any]) -> Page:
    """Return the page without its section of tasks."""
    groups: dict[str, list[Found]] = {}
    for found in _operations(document):
        groups.setdefault(found[0], []).append(found)
    places = (SECTION, *groups, SHAPES)
    links = "".join(f'<a href="#{escape(tag)}">{escape(tag)}</a>' for tag in places)
    sections = "".join(_section(document, tag, group) for tag, group in groups.items())
    info = document["info"]
    before = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(info['title'])} API</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(info['title'])} API</h1>"
        f'<p class="dim">Version {escape(info["version"])} · '
        '<a href="openapi.json">openapi.json</a></p>'
        f"<nav>{links}</nav>"
    )
    return Page(before.encode(), f"{sections}{_shapes(document)}</body></html>".encode())


Found = tuple[str, str, str, dict[str, Any]]
SHAPES: Final = "shapes"
"""The section of named schemas."""


def _operations(document: dict[str, Any]) -> Iterator[Found]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield operation["tags"][0], method.upper(), path, operation


def _section(document: dict[str, Any], tag: str, group: Iterable[Found]) -> str:
    entries = "".join(_entry(document, *each[1:]) for each in group)
    return f'<h2 id="{escape(tag)}">{escape(tag)}</h2>{entries}'


def _either(names: Sequence[str]) -> str:
    return " or ".join(f"<code>{name}</code>" for name in names)


def _entry(document: dict[str, Any], method: str, path: str, operation: dict[str, Any]) -> str:
    head = f"<b>{method}</b><code>{escape(path)}</code><span>{escape(operation['summary'])}</span>"
    more = operation["description"]
    parts = [
        f"<details><summary>{head}</summary>",
        "" if more.rstrip(".") == operation["summary"] else f"<p>{escape(more)}</p>",
        f"<pre>{escape(_curl(method, path, operation))}</pre>",
    ]
    scopes = [name for each in operation.get("security", ()) for name in each["token"]]
    if scopes:
        bound = operation.get("x-bound-token")
        besides = map(escape, operation.get("x-further-scopes", ()))
        needed = " and ".join([_either(scopes), *besides])
        parts.append(f"<p>Scope: {needed}; bound tokens: {_either(bound or ['no'])}</p>")
    if "parameters" in operation:
        rows = [
            (each["name"], each["schema"], each["required"]) for each in operation["parameters"]
        ]
        parts.append(_table("Parameters", rows, document))
    if "requestBody" in operation:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        parts.append(_fields(document, "Body", schema))
    answers = {
        status: response
        for status, response in operation["responses"].items()
        if status.startswith("2") and "content" in response
    }
    for response in list(answers.values())[:1]:  # further ones have the same body
        (content,) = response["content"].values()
        title = f"Response {' or '.join(answers)}"
        parts.append(_fields(document, title, content["schema"], answer=True))
    return "".join(parts) + "</details>"


def _shapes(document: dict[str, Any]) -> str:
    """Return the section that the tables link to."""
    shapes = document["components"]["schemas"]
    tables = "".join(
        f'<div id="{escape(name)}">{_fields(document, name, schema)}</div>'
        for name, schema in sorted(shapes.items())
        if "properties" in schema
    )
    return f'<h2 id="{SHAPES}">{SHAPES}</h2>{tables}'


def _curl(method: str, path: str, operation: dict[str, Any]) -> str:
    verb = "" if method == "GET" else f"-X {method} "
    body = ""
    if "requestBody" in operation:
        body = " \\\n  -H 'Content-Type: application/json' -d '{…}'"
    return f"curl {verb}http://127.0.0.1:8000{path}{body}"


def _fields(
    document: dict[str, Any], title: str, schema: dict[str, Any], *, answer: bool = False
) -> str:
    resolved = _resolve(document, schema)
    required = resolved.get("required", ())
    fields = resolved.get("properties", {})
    rows = [(name, kind, answer or name in required) for name, kind in fields.items()]
    return _table(title, rows, document)


def _resolve(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = document["components"]["schemas"].get(name, schema)
    return found


def _table(
    title: str, rows: Iterable[tuple[str, dict[str, Any], bool]], document: dict[str, Any]
) -> str:
    optional = ' <span class="dim">optional</span>'
    body = "".join(
        f"<tr><td><code>{escape(name)}</code>{'' if required else optional}</td>"
        f"<td><code>{_kind(schema, document)}</code></td></tr>"
        for name, schema, required in rows
    )
    return f"<table><tr><th>{escape(title)}</th><th></th></tr>{body}</table>" if body else ""


def _kind(schema: dict[str, Any], document: dict[str, Any]) -> str:
    """Return a schema in a few words, as HTML."""
    if "$ref" in schema:
        found = _resolve(document, schema)
        if "properties" not in found:
            return _kind(found, document)
        name = escape(str(schema["$ref"]).rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if "enum" in schema:
        return " | ".join(escape(str(value)) for value in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(_kind(each, document) for each in schema["anyOf"])
    kind = escape(str(schema.get("format") or schema.get("type") or "any JSON"))
    return f"{kind} of {_kind(schema['items'], document)}" if schema.get("items") else kind
