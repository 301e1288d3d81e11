"""Why a waiting task waits."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from fairlane.core.breaker import Breaker
from fairlane.core.facts import Facts, Stream
from fairlane.core.lanes import Bucket, Controls, Lane, Rules
from fairlane.core.model import Membership, Task, WorkerStatus
from fairlane.core.states import WAITING, State
from fairlane.core.why import Reason, reasons
from tests.unit.make import NOON, NOW, SECOND, facts, stored, task_id, worker

NEXT = Reason("position", "It is next in line.")


def why(task: Task, now: Facts | None = None, parents: tuple[Task, ...] = ()) -> list[Reason]:
    return reasons(task, facts() if now is None else now, parents)


def ruled(**rules: Any) -> Controls:
    return Controls(types={"email": Rules(**rules), "crawl": Rules(paused=True, rate=0.1)})


class TestWhoIsAsked:
    @pytest.mark.parametrize("state", [state for state in State if state not in WAITING])
    def test_a_task_that_does_not_wait_has_no_reasons(self, state: State) -> None:
        paused = facts(controls=Controls(everything=Rules(paused=True)), workers=[])
        assert why(stored(state=state), paused) == []

    @pytest.mark.parametrize("state", sorted(WAITING))
    def test_a_task_that_waits_is_told_of_everything_that_holds_it_up(self, state: State) -> None:
        controls = Controls(
            everything=Rules(paused=True, rate=1.0),
            paused_queues=frozenset({"default"}),
            types={"email": Rules(paused=True, rate=2.0, concurrency=1, open_until=NOW)},
        )
        now = facts(
            controls=controls,
            workers=[],
            held={1: 1},
            buckets={"": Bucket(0.0, NOW), "email": Bucket(0.0, NOW)},
        )
        task = stored(state=state, attempt=0, run_at=NOON + timedelta(seconds=5))
        codes = [reason.code for reason in why(task, now, (stored(),))]
        general = ["paused", "paused", "paused", "no_worker", "breaker", "concurrency"]
        expected = {
            State.SCHEDULED: ["dependency", "due", *general, "rate", "rate"],
            State.RETRYING: ["due", *general, "rate", "rate"],
            State.QUEUED: [*general, "rate", "rate", "position"],
        }
        assert codes == expected[state]

    def test_nothing_holds_up_a_task_that_is_next(self) -> None:
        assert why(stored()) == [NEXT]


class TestNotYet:
    @pytest.mark.parametrize(
        ("state", "seconds", "words"),
        [
            (State.SCHEDULED, 5, "It is due in 5 s."),
            (State.SCHEDULED, 7200, "It is due in 7,200 s."),
            (State.SCHEDULED, 0.75, "It is due in 1 s."),
            (State.SCHEDULED, 0, None),
            (State.SCHEDULED, -5, None),
            (State.QUEUED, 5, None),
        ],
    )
    def test_a_task_may_be_due_later(self, state: State, seconds: float, words: str | None) -> None:
        task = stored(state=state, attempt=0, run_at=NOON + timedelta(seconds=seconds))
        expected = [] if words is None else [Reason("due", words)]
        assert [reason for reason in why(task) if reason != NEXT] == expected

    def test_a_failed_attempt_is_followed_by_a_pause(self) -> None:
        task = stored(
            state=State.RETRYING,
            run_at=NOON + timedelta(seconds=99),
            next_retry_at=NOON + timedelta(seconds=4),
        )
        assert why(task) == [Reason("due", "It failed and is tried again in 4 s.")]
        late = stored(state=State.RETRYING, next_retry_at=NOON)
        assert why(late) == []

    def test_a_snoozed_task_is_due_later_like_any_other(self) -> None:
        snoozed = stored(state=State.SCHEDULED, attempt=3, run_at=NOON + timedelta(seconds=60))
        assert why(snoozed) == [Reason("due", "It is due in 60 s.")]


class TestDependencies:
    CHILD = stored(state=State.SCHEDULED, attempt=0)

    def parent(self, number: int, state: State) -> Task:
        return stored(task_id=task_id(number), state=state)

    @pytest.mark.parametrize("state", State)
    def test_it_waits_for_parents_that_have_not_ended(self, state: State) -> None:
        found = why(self.CHILD, parents=(self.parent(1, state),))
        waits = [Reason("dependency", f"It waits for task {task_id(1)} to end.")]
        assert found == (waits if state in WAITING | {State.EXECUTING} else [])

    @pytest.mark.parametrize(
        ("name", "owner", "said"),
        [
            ("order", None, f"load of the workflow order (task {task_id(1)})"),
            (None, None, f"load of its workflow (task {task_id(1)})"),
            ("order", "somebody", f"task {task_id(1)}"),
        ],
    )
    def test_a_task_of_its_workflow(self, name: str | None, owner: str | None, said: str) -> None:
        parent = replace(
            self.parent(1, State.QUEUED),
            workflow_id=task_id(9),
            membership=Membership("load", 2, name),
            owner=owner,
        )
        (found,) = why(replace(self.CHILD, workflow_id=task_id(9)), parents=(parent,))
        assert found.message == f"It waits for {said} to end."

    def test_the_first_is_named_and_the_others_are_counted(self) -> None:
        parents = (
            self.parent(1, State.COMPLETED),
            self.parent(2, State.QUEUED),
            self.parent(3, State.EXECUTING),
        )
        assert why(self.CHILD, parents=parents) == [
            Reason("dependency", f"It waits for task {task_id(2)} and 1 more to end.")
        ]
        assert why(self.CHILD, parents=(*parents, self.parent(4, State.RETRYING))) == [
            Reason("dependency", f"It waits for task {task_id(2)} and 2 more to end.")
        ]

    def test_it_may_wait_for_its_time_as_well(self) -> None:
        child = stored(state=State.SCHEDULED, attempt=0, run_at=NOON + timedelta(seconds=5))
        found = why(child, parents=(self.parent(1, State.QUEUED),))
        assert [reason.code for reason in found] == ["dependency", "due"]

    @pytest.mark.parametrize(
        "child",
        [
            stored(state=State.QUEUED, attempt=0),
            stored(state=State.RETRYING, attempt=0),
            stored(state=State.SCHEDULED, attempt=1),
        ],
        ids=["queued", "retrying", "snoozed"],
    )
    def test_one_that_was_let_go_does_not_wait_for_its_parents_again(self, child: Task) -> None:
        codes = [reason.code for reason in why(child, parents=(self.parent(1, State.QUEUED),))]
        assert "dependency" not in codes


class TestPaused:
    @pytest.mark.parametrize(
        ("controls", "words"),
        [
            (Controls(everything=Rules(paused=True)), "Everything is paused."),
            (Controls(paused_queues=frozenset({"default"})), "The queue default is paused."),
            (ruled(paused=True), "The type email is paused."),
        ],
        ids=["everything", "queue", "type"],
    )
    def test_by_what(self, controls: Controls, words: str) -> None:
        assert why(stored(), facts(controls=controls)) == [Reason("paused", words), NEXT]

    def test_what_else_is_paused_does_not_matter(self) -> None:
        controls = Controls(paused_queues=frozenset({"bulk"}), types={"crawl": Rules(paused=True)})
        assert why(stored(), facts(controls=controls)) == [NEXT]


class TestWorkers:
    NONE = Reason(
        "no_worker",
        "No worker is running: start one with `fairlane worker --app module:app`.",
    )
    UNABLE = Reason(
        "no_worker",
        "Every worker that serves it is draining, unhealthy or dead: start another one.",
    )
    ADVICE = (
        " Start one that does, or correct the names: `fairlane workers` lists those that are "
        "served."
    )

    def told(self, *workers: Any, **task: Any) -> list[Reason]:
        found = why(stored(**task), facts(workers=list(workers)))
        assert found.pop() == NEXT
        return found

    def test_there_may_be_none(self) -> None:
        assert self.told() == [self.NONE]

    def test_the_dead_do_not_run(self) -> None:
        assert self.told(worker(status=WorkerStatus.DEAD)) == [self.NONE]
        assert self.told(worker(lost=True)) == [self.NONE]

    @pytest.mark.parametrize(
        "able",
        [
            {},
            {"types": frozenset({"email", "crawl"})},
            {"queues": frozenset({"default"})},
            {"capabilities": frozenset({"gpu"})},
        ],
        ids=["all", "types", "queues", "capabilities"],
    )
    def test_one_that_serves_it_is_enough(self, able: dict[str, Any]) -> None:
        assert self.told(worker(**able)) == []
        assert self.told(worker(status=WorkerStatus.DEAD), worker(**able)) == []

    @pytest.mark.parametrize(
        "unfit",
        [
            {"types": frozenset({"crawl"})},
            {"queues": frozenset({"bulk"})},
            {"types": frozenset[str]()},
        ],
        ids=["type", "queue", "nothing"],
    )
    def test_others_do_not_serve_it(self, unfit: dict[str, Any]) -> None:
        assert self.told(worker(**unfit)) == [
            Reason(
                "no_worker",
                f"No worker serves it: it needs queue default, type email.{self.ADVICE}",
            )
        ]

    @pytest.mark.parametrize("has", [frozenset[str](), frozenset({"gpu"}), frozenset({"arm"})])
    def test_it_needs_every_capability(self, has: frozenset[str]) -> None:
        needs = ("gpu", "ssd")
        assert self.told(worker(capabilities=has), capabilities=needs) == [
            Reason(
                "no_worker",
                "No worker serves it: it needs queue default, type email, "
                f"capability gpu, capability ssd.{self.ADVICE}",
            )
        ]
        able = worker(capabilities=frozenset({"gpu", "ssd", "arm"}))
        assert self.told(able, capabilities=needs) == []

    @pytest.mark.parametrize(
        "unable",
        [
            {"status": WorkerStatus.DRAINING},
            {"status": WorkerStatus.UNHEALTHY},
        ],
        ids=["draining", "unhealthy"],
    )
    def test_those_that_serve_it_may_take_nothing_now(self, unable: dict[str, Any]) -> None:
        assert self.told(worker(**unable)) == [self.UNABLE]
        other = worker(types=frozenset({"crawl"}))
        assert self.told(worker(**unable), other) == [self.UNABLE]

    @pytest.mark.parametrize(
        "gone", [{"status": WorkerStatus.DEAD}, {"lost": True}], ids=["dead", "lost"]
    )
    def test_those_that_serve_it_may_be_gone_while_others_run(self, gone: dict[str, Any]) -> None:
        other = worker(types=frozenset({"crawl"}))
        assert self.told(worker(**gone), other) == [self.UNABLE]

    def test_those_that_serve_it_may_hold_its_type_back(self) -> None:
        holding = worker(health={"held_back": ["email"]})
        reason = Reason("held_back", "Its workers hold it back: handlers of email hang.")
        assert self.told(holding) == [reason]
        assert self.told(holding, worker(status=WorkerStatus.DRAINING)) == [reason]
        assert self.told(holding, worker(types=frozenset({"crawl"}))) == [reason]
        assert self.told(holding, worker()) == []
        assert self.told(worker(health={"held_back": ["crawl"]})) == []
        unable = worker(health={"held_back": ["email"]}, status=WorkerStatus.UNHEALTHY)
        assert self.told(unable) == [self.UNABLE]


class TestLimits:
    LANES = (
        Lane(1, "default", "email", ()),
        Lane(2, "bulk", "email", ()),
        Lane(3, "default", "crawl", ()),
    )

    def told(self, controls: Controls, **changes: Any) -> list[Reason]:
        lanes = {lane.id: lane for lane in self.LANES}
        found = why(stored(), facts(lanes=lanes, controls=controls, **changes))
        assert found.pop() == NEXT
        return found

    @pytest.mark.parametrize(
        ("open_until", "then"),
        [
            (NOW + 30 * SECOND, "for 30 s more"),
            (NOW + 7200 * SECOND, "for 7,200 s more"),
            (NOW + 8000 * SECOND, "but for one task at a time"),  # of a clock that was ahead
            (NOW, "but for one task at a time"),
            (NOW - SECOND, "but for one task at a time"),
        ],
    )
    def test_a_circuit_that_is_not_closed(self, open_until: int, then: str) -> None:
        controls = ruled(breaker=Breaker(5, 60.0, 7200.0), open_until=open_until)
        assert self.told(controls) == [
            Reason("breaker", f"Too many runs of email failed: it is left alone {then}.")
        ]

    def test_a_closed_circuit_holds_nothing_up(self) -> None:
        assert self.told(ruled(breaker=Breaker(5, 60.0, 30.0))) == []

    @pytest.mark.parametrize(
        ("held", "words"),
        [
            ({}, None),
            ({1: 4}, None),
            ({1: 4, 3: 9}, None),
            ({1: 5}, "5 of at most 5 email are running."),
            ({1: 4, 2: 1}, "5 of at most 5 email are running."),
            ({1: 4, 2: 3}, "7 of at most 5 email are running."),
            ({1: 4, 9: 3}, None),
        ],
    )
    def test_slots_of_its_type_in_all_lanes(self, held: dict[int, int], words: str | None) -> None:
        expected = [] if words is None else [Reason("concurrency", words)]
        assert self.told(ruled(concurrency=5), held=held) == expected

    def test_without_a_limit_any_number_may_run(self) -> None:
        assert self.told(ruled(), held={1: 10_000}) == []

    @pytest.mark.parametrize(
        ("bucket", "empty"),
        [
            (None, False),
            (Bucket(1.0, NOW), False),
            (Bucket(0.99, NOW), True),
            (Bucket(0.0, NOW - SECOND), True),
            (Bucket(0.0, NOW - 2 * SECOND), False),
        ],
        ids=["new", "full", "short of one", "filling", "filled since"],
    )
    def test_tokens_of_its_type_and_of_everything(self, bucket: Bucket | None, empty: bool) -> None:
        own = {} if bucket is None else {"email": bucket}
        expected = [Reason("rate", "email is limited to 0.5 a second.")] if empty else []
        assert self.told(ruled(rate=0.5), buckets=own) == expected
        overall = {} if bucket is None else {"": bucket}
        expected = [Reason("rate", "Everything together is limited to 0.5 a second.")]
        controls = Controls(everything=Rules(rate=0.5))
        assert self.told(controls, buckets=overall) == (expected if empty else [])

    def test_without_a_rate_a_bucket_means_nothing(self) -> None:
        empty = {"": Bucket(0.0, NOW), "email": Bucket(0.0, NOW)}
        assert self.told(Controls(), buckets=empty) == []


class TestPosition:
    @pytest.mark.parametrize(
        ("depth", "words"),
        [(1, "One task is ahead of it."), (1_234, "About 1,234 tasks are ahead of it.")],
    )
    def test_others_may_be_ahead(self, depth: int, words: str) -> None:
        now = facts(streams=[Stream(1, 8, depth, NOW, NOW)])
        assert why(stored(), now) == [Reason("position", words)]
