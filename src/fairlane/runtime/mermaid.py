"""A workflow as a Mermaid flowchart, which many tools draw."""

from __future__ import annotations

from collections.abc import Iterator

from fairlane.core.workflows import Workflow

_ESCAPED = {ord(each): f"#{ord(each)};" for each in "#\"'`<>&;"}


def mermaid(workflow: Workflow) -> str:
    """Return a flowchart with a box for each task: its name and its state."""
    return "\n".join(_lines(workflow))


def _lines(workflow: Workflow) -> Iterator[str]:
    places = {node.task_id: f"n{number}" for number, node in enumerate(workflow.nodes, 1)}
    yield "flowchart LR"
    for node in workflow.nodes:
        yield f'  {places[node.task_id]}["{node.name.translate(_ESCAPED)}<br/>{node.state}"]'
    for node in workflow.nodes:
        for parent in node.parents:
            if parent in places:
                yield f"  {places[parent]} --> {places[node.task_id]}"
