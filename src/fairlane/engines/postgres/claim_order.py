"""Which streams a claim reads, in which order, and the statement that reads them.

Age divides a stream into segments of one effective level each. Segments of the same effective level
form a group that is merged by (ready_at, task_id); groups are read from the highest level down. A
statement has one arm per segment. The number of arms in a group is rounded up to a power of two,
with arms that find nothing, so that few different statements are needed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from heapq import nsmallest
from typing import Any, NamedTuple

from fairlane.core.flow import Flow
from fairlane.core.lanes import Opening
from fairlane.core.priority import ALWAYS_YOUNG, MICROSECONDS, Aging
from fairlane.core.streams import FEW, Head, first_heads
from fairlane.engines.files import fill, part
from fairlane.engines.postgres.calls import Query
from fairlane.engines.postgres.context import Known
from fairlane.engines.postgres.rows import array
from fairlane.engines.postgres.statements import load

SQL = load("claim")

Shape = tuple[int, ...]
"""How many arms each group has."""

Section = tuple[Sequence[int], int]
"""Some lanes of an opening, and the most tasks that may be claimed from them."""

_SLACK = MICROSECONDS
"""A task may be older by this when it is claimed than when its arm was chosen."""

_NO_LANE = -1
_ORDER = " ORDER BY ready_at, task_id"


class Arm(NamedTuple):
    """One segment of one stream. Ages are in microseconds."""

    lane: int
    level: int
    from_age: int
    to_age: int
    effective: int


def arms_of(lanes: Iterable[int], levels: Mapping[int, Collection[int]], aging: Aging) -> list[Arm]:
    """Return the segments of all streams of these lanes, from the highest effective level down."""
    lanes = list(lanes)
    return [
        Arm(
            lane,
            segment.level,
            # The youngest segment has no bound: a clock that steps back must not hide tasks.
            segment.from_age or -ALWAYS_YOUNG,
            ALWAYS_YOUNG if segment.to_age is None else segment.to_age,
            effective,
        )
        for effective, segments in aging.walk()
        for segment in segments
        for lane in lanes
        if segment.level in levels.get(lane, ())
    ]


def choose_arms(
    known: Known, opening: Opening, sections: Sequence[Section]
) -> Flow[list[list[Arm]]]:
    """Return for each section the arms from which its tasks can be claimed."""
    if len(opening.lanes) <= FEW:
        arms = [arms_of(lanes, known.levels, known.aging) for lanes, _ in sections]
        if all(len(each) <= FEW for each in arms):
            return arms
    if not opening.spans:
        return [[] for _ in sections]
    first, last = zip(*opening.spans, strict=True)
    rows = yield Query(SQL["heads"], (array(first), array(last)))
    if not rows:
        return [[] for _ in sections]
    section_of = {lane: number for number, (lanes, _) in enumerate(sections) for lane in lanes}
    heads: list[list[Head]] = [[] for _ in sections]
    for *head, _ in rows:
        if head[0] in section_of:
            heads[section_of[head[0]]].append(Head._make(head))
    now = rows[0][-1]
    found = []
    for some, (_, most) in zip(heads, sections, strict=True):
        found.append((yield from _first_arms(known.aging, some, now, most)))
    return found


def _first_arms(aging: Aging, heads: list[Head], now: int, most: int) -> Flow[list[Arm]]:
    """Return the arms from which `most` tasks of these streams can be claimed."""
    # A few more than needed: other workers may claim the same tasks at this moment.
    most = max(most, FEW)
    ages = {
        (head.lane, head.level): now - head.ready_at + _SLACK
        for head in first_heads(heads, aging, now, most, lambda _: None)
    }
    levels: dict[int, set[int]] = {}
    for lane, level in ages:
        levels.setdefault(lane, set()).add(level)
    # No task of a stream is older than its first one.
    arms = [
        arm for arm in arms_of(levels, levels, aging) if arm.from_age <= ages[arm.lane, arm.level]
    ]
    if len(arms) <= most:
        return arms
    *places, effectives = [list(column) for column in zip(*arms, strict=True)]
    rows = yield Query(SQL["arm_heads"], places)

    def rank(row: tuple[Any, ...]) -> tuple[int, int, str]:
        n, ready_at, task_id = row
        return (-effectives[n - 1], ready_at, str(task_id))

    return [arms[n] for n in sorted(row[0] - 1 for row in nsmallest(most, rows, rank))]


class Reading:
    """Arms in the order they are read, as the shapes of a statement and its parameters."""

    def __init__(self, sections: Sequence[Sequence[Arm]]) -> None:
        arms: list[Arm] = []
        effectives: list[int] = []
        shapes: list[Shape] = []
        for section in sections:
            sizes = []
            groups: dict[int, list[Arm]] = {}
            for arm in section:
                groups.setdefault(arm.effective, []).append(arm)
            for effective, group in (groups or {0: []}).items():
                size = 1 << (max(1, len(group)) - 1).bit_length()
                idle = Arm(_NO_LANE, 0, 0, 0, effective)
                arms += group + [idle] * (size - len(group))
                effectives.append(effective)
                sizes.append(size)
            shapes.append(tuple(sizes))
        self.shapes = tuple(shapes)
        self.columns = (
            [arm.lane for arm in arms],
            [arm.level for arm in arms],
            [arm.from_age for arm in arms],
            [arm.to_age for arm in arms],
            effectives,
        )


_PICK = part(SQL["claim_within_limits"], "pick")
_SECTION = part(_PICK, "sections")
_GROUP = part(SQL["claim"], "groups")
_ARM = part(_GROUP, "arms")

_FIRST = re.compile(r"\[1\]|_1\b")


def _numbered(example: str, number: int) -> str:
    """Return the n-th of what is repeated, made from the first: `[1]` and `_1` get its number."""
    return _FIRST.sub(lambda first: first[0].replace("1", str(number)), example)


@lru_cache(maxsize=256)
def statement(shape: Shape) -> str:
    """Return the claim from arms of this shape."""
    return fill(SQL["claim"], groups=_groups(shape, 1, 1))


@lru_cache(maxsize=256)
def statement_within_limits(shapes: tuple[Shape, ...]) -> str:
    """Return the claim from sections of these shapes, each with a limit of its own."""
    sections = []
    arm, group = 1, 1
    for number, shape in enumerate(shapes, start=1):
        sections.append(fill(_numbered(_SECTION, number), groups=_groups(shape, arm, group)))
        arm += sum(shape)
        group += len(shape)
    tables = [f"TABLE section_{number}" for number in range(1, len(shapes) + 1)]
    pick = fill(_PICK, sections=",\n".join(sections), tables=" UNION ALL ".join(tables))
    return fill(SQL["claim"], pick=pick)


def _groups(shape: Shape, arm: int, group: int) -> str:
    """Return the groups of a shape, whose arms and groups are numbered from these on."""
    found = []
    for size in shape:
        arms = " UNION ALL ".join(_numbered(_ARM, n) for n in range(arm, arm + size))
        # One arm is in order by itself, and SQL has no second ORDER BY for it.
        order = _ORDER if size > 1 else ""
        found.append(fill(_numbered(_GROUP, group), arms=arms + order))
        arm += size
        group += 1
    return " UNION ALL ".join(found)
