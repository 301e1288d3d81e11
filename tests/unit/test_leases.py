"""Workers: who can be registered, and what a beat may change."""

from typing import Any

import pytest

from fairlane.core import limits
from fairlane.core.errors import InvalidWorker
from fairlane.core.leases import checked, health_of, status_after_beat, stored_health
from fairlane.core.model import Beat, NewWorker, WorkerStatus

NAN = float("nan")


class TestChecked:
    def test_an_id_is_enough(self) -> None:
        worker = NewWorker("w1")
        assert checked(worker) is worker
        assert (worker.capacity, worker.lease) == (10, 30.0)

    @pytest.mark.parametrize(
        "worker",
        [
            NewWorker("host:1234.worker_a-b"),
            NewWorker("w" * 255),
            NewWorker("w", capacity=1),
            NewWorker("w", capacity=1_000_000),
            NewWorker("w", lease=0.001),
            NewWorker("w", lease=86_400.0),
            NewWorker("w", start_within=0.001),
            NewWorker("w", start_within=86_400.0),
        ],
    )
    def test_a_worker_within_the_bounds_passes(self, worker: NewWorker) -> None:
        assert checked(worker) is worker

    @pytest.mark.parametrize(
        "worker_id", ["", "w" * 256, "a b", "a/b", "w\n", "größe", "\x00", "\ud800"], ids=ascii
    )
    def test_a_bad_id_is_refused(self, worker_id: str) -> None:
        with pytest.raises(InvalidWorker, match="A worker id has 1 to 255 characters"):
            checked(NewWorker(worker_id))

    @pytest.mark.parametrize("capacity", [0, -1, 1_000_001])
    def test_a_bad_capacity_is_refused(self, capacity: int) -> None:
        with pytest.raises(InvalidWorker, match="capacity is 1 to 1,000,000 tasks"):
            checked(NewWorker("w", capacity=capacity))

    @pytest.mark.parametrize("lease", [0, 0.0, -1.0, 86_400.1, NAN, float("inf")])
    def test_a_bad_lease_is_refused(self, lease: Any) -> None:
        with pytest.raises(InvalidWorker, match="above 0 and at most 86,400 seconds") as caught:
            checked(NewWorker("w", lease=lease))
        assert caught.value.code == "invalid_worker"

    @pytest.mark.parametrize("seconds", [0, -1.0, 86_400.1, NAN, float("inf")])
    def test_a_bad_time_to_start_is_refused(self, seconds: Any) -> None:
        with pytest.raises(InvalidWorker, match=r"to its start is above 0 and at most 86,400"):
            checked(NewWorker("w", start_within=seconds))


class TestBeat:
    @pytest.mark.parametrize("status", WorkerStatus)
    def test_a_beat_that_says_nothing_leaves_the_status_as_it_is(
        self, status: WorkerStatus
    ) -> None:
        assert status_after_beat(status, None) is status

    @pytest.mark.parametrize("reported", ["active", "unhealthy", "draining"])
    @pytest.mark.parametrize("current", ["active", "unhealthy"])
    def test_a_worker_speaks_for_its_own_health(self, current: str, reported: str) -> None:
        assert status_after_beat(WorkerStatus(current), WorkerStatus(reported)) == reported

    @pytest.mark.parametrize("reported", WorkerStatus)
    def test_a_worker_does_not_talk_itself_out_of_a_drain(self, reported: WorkerStatus) -> None:
        assert status_after_beat(WorkerStatus.DRAINING, reported) is WorkerStatus.DRAINING


@pytest.mark.parametrize(
    "worker",
    [
        NewWorker("w", capacity=1.5),  # type: ignore[arg-type]
        NewWorker(7),  # type: ignore[arg-type]
        NewWorker("w", capabilities=frozenset({"g p u"})),
        NewWorker("w", queues=frozenset({""})),
        NewWorker("w", types=frozenset({"\x00"})),
        NewWorker("w", host="\x00"),
        NewWorker("w", version="1" * 256),
    ],
    ids=repr,
)
def test_what_no_engine_should_have_to_store_is_refused(worker: NewWorker) -> None:
    with pytest.raises(InvalidWorker):
        checked(worker)


def test_a_worker_may_name_what_it_serves() -> None:
    worker = NewWorker("w", capabilities=frozenset({"gpu", "big"}), types=frozenset({"a", "b"}))
    assert checked(worker) is worker


def nested(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(levels - 1):
        found = {"a": found}
    return found


@pytest.mark.parametrize(
    "names",
    [
        frozenset(f"t{number}" for number in range(limits.WORKER_NAMES + 1)),
        frozenset(f"t{number:0200}" for number in range(limits.WORKER_NAME_BYTES // 200 + 1)),
    ],
    ids=["too many", "too long together"],
)
def test_a_worker_names_a_limited_amount(names: frozenset[str]) -> None:
    with pytest.raises(InvalidWorker, match="takes all of them"):
        checked(NewWorker("w", types=names, queues=frozenset({"q"})))


class TestHealth:
    @pytest.mark.parametrize(
        "health", [None, {}, {"cpu": 0.5, "note": "\xe9"}, nested(limits.JSON_DEPTH)]
    )
    def test_it_is_stored_and_read(self, health: dict[str, Any] | None) -> None:
        assert health_of(stored_health(Beat("w", health=health))) == health

    def test_many_brackets_are_not_deep(self) -> None:
        health: dict[str, Any] = {"list": [[] for _ in range(limits.JSON_DEPTH)]}
        assert health_of(stored_health(Beat("w", health=health))) == health

    @pytest.mark.parametrize(
        "health",
        [
            {"a": "x" * limits.HEALTH_BYTES},
            nested(limits.JSON_DEPTH + 1),
            nested(600),
        ],
        ids=["large", "deep", "very deep"],
    )
    def test_too_much_is_refused(self, health: dict[str, Any]) -> None:
        with pytest.raises(InvalidWorker, match="A worker's health"):
            stored_health(Beat("w", health=health))

    @pytest.mark.parametrize("levels", [limits.JSON_DEPTH + 1, 900, 100_000])
    def test_what_was_stored_before_there_was_a_limit_is_marked(self, levels: int) -> None:
        stored = '{"a":' * levels + "1" + "}" * levels
        assert health_of(stored) == {"unreadable": "nested more than 100 levels deep"}
