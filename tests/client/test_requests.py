"""Looking for rare tasks in a large store."""

from fairlane.client.requests import READS, list_bounded, list_tasks
from fairlane.core.filters import EVERYTHING, Page
from fairlane.core.flow import perform
from fairlane.core.store import Operations
from tests.unit.make import stored


class Store:
    """Answers with empty pages for a while."""

    def __init__(self, empty: int) -> None:
        self.empty = empty
        self.asked: list[str | None] = []

    def page(self, *asked: object) -> object:
        return asked

    def answer(self, asked: tuple[object, int, str | None]) -> Page:
        self.asked.append(asked[2])
        count = len(self.asked)
        if count > self.empty:
            return Page([stored()], None)
        return Page([], f"c{count}")


def _ops(store: Store) -> Operations:
    return store  # type: ignore[return-value]


def test_empty_pages_are_passed_over() -> None:
    store = Store(2)
    page = perform(list_bounded(_ops(store), EVERYTHING, 5, None), store.answer)
    assert (len(page.tasks), page.next_cursor) == (1, None)
    assert store.asked == [None, "c1", "c2"]


def test_who_waits_for_an_answer_is_told_where_to_go_on() -> None:
    store = Store(1_000)
    page = perform(list_bounded(_ops(store), EVERYTHING, 5, None), store.answer)
    assert (page.tasks, page.next_cursor) == ([], f"c{READS}")


def test_a_caller_who_wants_all_of_it_waits() -> None:
    store = Store(3 * READS)
    page = perform(list_tasks(_ops(store), 5, None, {}), store.answer)
    assert len(page.tasks) == 1
    assert len(store.asked) == 3 * READS + 1
