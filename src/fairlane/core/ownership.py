"""Whose tasks they are, and what a bound token may see of them.

A token has a subject: the person, team or program that it stands for. A task that is submitted with
the token belongs to that subject (`Spec.owner`). A token can be bound: to the tasks of its subject,
to queues, to tags, or to several of these at once. For a bound token, tasks outside of its bounds
do not exist.

Keys belong to a namespace. Tokens without bounds share one. The keys of a bound token belong to its
subject, so that nobody can take them, or learn of them, with a token of another subject.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Final

import msgspec

from fairlane.core import limits
from fairlane.core.errors import InvalidTags, OutOfBounds
from fairlane.core.filters import Filter
from fairlane.core.model import PLAIN, NewTask, Spec, Task
from fairlane.core.text import shown
from fairlane.core.uniqueness import Hold

replace = msgspec.structs.replace

_SEPARATOR: Final = "\x1f"
"""Between subject and idempotency key. Neither may contain a control character."""


def stamped(task: NewTask, subject: str) -> NewTask:
    """Return a new task that belongs to this subject."""
    spec = task.spec
    owned = _plain(subject) if spec is PLAIN else replace(spec, owner=subject)
    return replace(task, spec=owned)


@lru_cache(maxsize=1024)
def _plain(subject: str) -> Spec:
    """Return the spec of the most common task. It is made once: every submission needs it."""
    return Spec(owner=subject)


def shown_key(stored: str | None) -> str | None:
    """Return an idempotency key as its submitter wrote it, without its namespace."""
    return None if stored is None else stored.rpartition(_SEPARATOR)[2]


class Bounds(msgspec.Struct, frozen=True):
    """What a bound token may see and submit: tasks that meet all of these conditions.

    `own`: they belong to its subject. `queues`: they are in one of these queues, None for any.
    `tags`: they have all of these tags.
    """

    subject: str
    own: bool = False
    queues: frozenset[str] | None = None
    tags: Mapping[str, str] = {}

    def __str__(self) -> str:
        return " with ".join(self._conditions())

    def _conditions(self) -> Iterator[str]:
        whose = f"the tasks of {shown(self.subject)}" if self.own else "tasks"
        if self.queues is None:
            yield whose
        else:
            kind = "queue" if len(self.queues) == 1 else "queues"
            yield f"{whose} in the {kind} {', '.join(sorted(self.queues))}"
        if self.tags:
            kind = "tag" if len(self.tags) == 1 else "tags"
            pairs = ", ".join(f"{shown(name)}: {shown(self.tags[name])}" for name in self.tags)
            yield f"the {kind} {pairs}"

    def admits(self, task: Task) -> bool:
        """Return whether a task is within the bounds."""
        return self._admit(task.owner, task.queue, task.tags)

    def admits_new(self, task: NewTask) -> bool:
        """Return whether a new task is within the bounds, and its key in the namespace."""
        spec, key = task.spec, task.idempotency_key
        return (
            self._admit(spec.owner, task.queue, spec.tags)
            and spec.owner == self.subject
            and (key is None or key.startswith(self.subject + _SEPARATOR))
        )

    def _admit(self, owner: str | None, queue: str, tags: Mapping[str, str]) -> bool:
        return (
            (not self.own or owner == self.subject)
            and (self.queues is None or queue in self.queues)
            and self.tags.items() <= tags.items()
        )

    def narrow(self, filter: Filter) -> Filter:
        """Return a filter that admits the same tasks, as far as they are within the bounds.

        Raises OutOfBounds if the filter asks for others by name.
        """
        owner = filter.owner
        if self.own and owner not in {None, self.subject}:
            raise self._refusal(f"the tasks of {shown(owner)} are not among them")
        return replace(
            filter,
            owner=self.subject if self.own else owner,
            queues=self.narrow_queues(filter.queues),
            tags=self._with_tags(filter.tags),
        )

    def narrow_queues(self, queues: frozenset[str] | None) -> frozenset[str] | None:
        """Return the queues that somebody asks for; all within the bounds if he names none.

        Raises OutOfBounds for others.
        """
        if self.queues is None or queues is None:
            return queues if self.queues is None else self.queues
        others = sorted(queues - self.queues)
        if others:
            raise self._refusal(f"the queue {shown(others[0])} is not among them")
        return queues

    def own_task(self, task: NewTask) -> NewTask:
        """Return a new task within the bounds: with its owner and tags, and keys in the namespace.

        Raises OutOfBounds if it is for another queue, or has another value of a tag.
        """
        self.narrow_queues(frozenset({task.queue}))
        tags = self._with_tags(task.spec.tags)
        if len(tags) > limits.TAGS:
            raise InvalidTags(
                f"A task has at most {limits.TAGS} tags, and this token adds {len(self.tags)}: "
                "give it fewer."
            )
        key, unique = task.idempotency_key, task.unique
        return replace(
            task,
            spec=replace(task.spec, owner=self.subject, tags=tags),
            idempotency_key=None if key is None else self.own_key(key),
            unique=None if unique is None else self._own_hold(unique),
        )

    def own_key(self, key: str) -> str:
        """Return a key in the namespace of the subject."""
        return self.subject + _SEPARATOR + key

    def _own_hold(self, unique: Hold) -> Hold:
        kind = self.subject.encode() + _SEPARATOR.encode() + unique.key
        return replace(unique, key=blake2b(kind, digest_size=len(unique.key)).digest())

    def _with_tags(self, tags: Mapping[str, str]) -> dict[str, str]:
        for name, value in self.tags.items():
            if tags.get(name, value) != value:
                raise self._refusal(f"{shown(tags[name])} is another value of {shown(name)}")
        return {**tags, **self.tags}

    def _refusal(self, why: str) -> OutOfBounds:
        return OutOfBounds(f"This token is bound to {self}: {why}.")
