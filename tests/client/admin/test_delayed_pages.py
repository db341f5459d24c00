"""Lists of delayed messages that take several answers."""

from __future__ import annotations

from headwater.client.admin.delayed_pages import PAGE_MAX, SKIP_MAX, DelayedPages
from headwater.client.admin.delayed_requests import Question
from headwater.wire.cluster_messages.describe_delayed import DescribedMessage


def answer(
    waiting: list[tuple[int, int]], question: Question, *, knows_pages: bool = True
) -> tuple[list[DescribedMessage], bool]:
    """What a broker says in which these wait, as due time and offset."""
    due = sorted(each for each in waiting if question.from_ms <= each[0] <= question.to_ms)
    due = due[question.skip if knows_pages else 0 :]
    page = [DescribedMessage(offset=offset, due_ms=ms) for ms, offset in due[: question.limit]]
    return page, len(due) > len(page)


def read(waiting: list[tuple[int, int]], limit: int, *, knows_pages: bool = True) -> DelayedPages:
    pages = DelayedPages(0, 10**9, limit)
    while question := pages.question():
        assert question.limit <= PAGE_MAX
        page, has_more = answer(waiting, question, knows_pages=knows_pages)
        pages.add(page, has_more=has_more)
    return pages


def offsets(pages: DelayedPages) -> list[int]:
    return [each.offset for each in pages.messages]


def test_pages_follow_each_other() -> None:
    # Pages end in the middle of messages that are due together.
    waiting = [(number // 7, number) for number in range(3 * PAGE_MAX + 5)]
    found = read(waiting, 10**6)
    assert offsets(found) == list(range(3 * PAGE_MAX + 5)) and not found.has_more


def test_more_are_due_together_than_a_page_has() -> None:
    waiting = [(5, number) for number in range(2 * PAGE_MAX + 1)]
    found = read([*waiting, (6, 10_000)], 10**6)
    assert offsets(found) == [*range(2 * PAGE_MAX + 1), 10_000] and not found.has_more


def test_a_limit_ends_the_list() -> None:
    waiting = [(number, number) for number in range(2 * PAGE_MAX)]
    found = read(waiting, PAGE_MAX + 1)
    assert offsets(found) == list(range(PAGE_MAX + 1)) and found.has_more


def test_a_broker_that_knows_no_pages() -> None:
    waiting = [(number, number) for number in range(2 * PAGE_MAX)]
    assert offsets(read(waiting, 10**6, knows_pages=False)) == list(range(2 * PAGE_MAX))
    # Without pages nobody gets past so many that are due together, and the list says so.
    found = read([(5, number) for number in range(2 * PAGE_MAX)], 10**6, knows_pages=False)
    assert offsets(found) == list(range(PAGE_MAX)) and found.has_more


def test_too_many_are_due_together() -> None:
    pages = DelayedPages(0, 10**9, 10**9)
    pages.add(
        [DescribedMessage(offset=number, due_ms=5) for number in range(SKIP_MAX + 1)],
        has_more=True,
    )
    assert pages.question() is None and pages.has_more
