"""Graphs whose nodes are named: in which order their tasks can run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fairlane.core import limits
from fairlane.core.errors import InvalidWorkflow
from fairlane.core.membership import checked_name
from fairlane.core.text import shown


class GraphNode(NamedTuple):
    """A task of a graph, and the names of those that it waits for."""

    name: str
    parents: tuple[str, ...]


def order(nodes: Sequence[GraphNode]) -> list[int]:
    """Return the places of nodes so that each comes after those that it waits for.

    Raises InvalidWorkflow, which names the node, for a name that is given twice or does not exist,
    for a cycle, and for too many nodes.
    """
    if not 1 <= len(nodes) <= limits.WORKFLOW_NODES:
        raise InvalidWorkflow(
            f"A workflow has 1 to {limits.WORKFLOW_NODES} tasks, not {len(nodes):,}. Let a task do "
            "several steps, or let it submit further tasks."
        )
    places: dict[str, int] = {}
    for place, node in enumerate(nodes):
        if checked_name(node.name) in places:
            raise InvalidWorkflow(
                f"Two tasks have the name {shown(node.name)}: give one of them another."
            )
        places[node.name] = place
    for node in nodes:
        for parent in node.parents:
            if parent not in places:
                raise InvalidWorkflow(
                    f"The task {shown(node.name)} waits for {shown(parent)}, and no task has this "
                    "name."
                )
    return list(_ordered([[places[each] for each in node.parents] for node in nodes], nodes))


def _ordered(parents: Sequence[Sequence[int]], nodes: Sequence[GraphNode]) -> Iterator[int]:
    waits = [len(set(each)) for each in parents]
    children: list[list[int]] = [[] for _ in nodes]
    for place, each in enumerate(parents):
        for parent in set(each):
            children[parent].append(place)
    ready = [place for place, count in enumerate(waits) if not count]
    for place in ready:  # which grows
        yield place
        for child in children[place]:
            waits[child] -= 1
            if not waits[child]:
                ready.append(child)
    if len(ready) < len(nodes):
        left = set(range(len(nodes))) - set(ready)
        raise InvalidWorkflow(f"{_cycle(parents, left, nodes)} wait for each other in a circle.")


def _cycle(parents: Sequence[Sequence[int]], left: set[int], nodes: Sequence[GraphNode]) -> str:
    """Return the names of nodes that wait for each other."""
    place = min(left)
    seen: list[int] = []
    while place not in seen:
        seen.append(place)
        place = next(each for each in parents[place] if each in left)
    names = [nodes[each].name for each in seen[seen.index(place) :]]
    return ", ".join(shown(name) for name in names[:10]) + (" …" if len(names) > 10 else "")
