"""Workers: who can be registered, and what a beat may change."""

from typing import Any

import pytest

from fairlane.core.errors import InvalidWorker
from fairlane.core.leases import checked, status_after_beat
from fairlane.core.model import NewWorker, WorkerStatus

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
