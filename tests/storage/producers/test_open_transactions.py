from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.checks import InvariantError
from headwater.storage.producers.open_transactions import CompletedTransaction, OpenTransactions


def test_nothing_is_unstable_without_transactions() -> None:
    transactions = OpenTransactions()
    assert transactions.first_undecided_offset is None
    assert transactions.first_unstable_offset is None
    assert not transactions.has_unreplicated


def test_an_ended_transaction_stays_unstable_until_its_marker_is_replicated() -> None:
    transactions = OpenTransactions()
    transactions.start(10, producer_id=1)
    transactions.start(12, producer_id=2)
    assert transactions.first_unstable_offset == 10
    ended = CompletedTransaction(1, 10, 20, is_aborted=True)
    assert transactions.last_stable_offset(ended) == 12
    transactions.complete(ended)
    assert transactions.first_undecided_offset == 12
    assert transactions.first_unstable_offset == 10
    transactions.forget_unreplicated_below(20)
    assert transactions.first_unstable_offset == 10, "the marker itself is not replicated yet"
    transactions.forget_unreplicated_below(21)
    assert transactions.first_unstable_offset == 12


def test_transactions_may_end_in_another_order_than_they_began() -> None:
    transactions = OpenTransactions()
    for producer_id, first_offset in enumerate((10, 12, 14)):
        transactions.start(first_offset, producer_id)
    for producer_id, first_offset, last_offset in ((2, 14, 20), (0, 10, 21), (1, 12, 22)):
        transactions.complete(CompletedTransaction(producer_id, first_offset, last_offset, False))
    assert transactions.first_unstable_offset == 10
    transactions.forget_unreplicated_below(21)
    assert transactions.first_unstable_offset == 10
    transactions.forget_unreplicated_below(22)
    assert transactions.first_unstable_offset == 12
    transactions.forget_unreplicated_below(23)
    assert transactions.first_unstable_offset is None


def test_the_last_stable_offset_is_behind_the_marker_if_nothing_else_is_open() -> None:
    transactions = OpenTransactions()
    transactions.start(10, producer_id=1)
    transactions.start(30, producer_id=1)  # The same producer's next transaction does not count.
    assert transactions.last_stable_offset(CompletedTransaction(1, 10, 20, True)) == 21


@pytest.mark.parametrize("completed", [(1, 11, 20, True), (2, 10, 20, True)])
def test_only_an_open_transaction_can_end(completed: tuple[int, int, int, bool]) -> None:
    transactions = OpenTransactions()
    transactions.start(10, producer_id=1)
    with pytest.raises(InvariantError):
        transactions.complete(CompletedTransaction(*completed))


def test_reset_sorts_what_it_is_given() -> None:
    transactions = OpenTransactions()
    transactions.start(1, producer_id=9)
    transactions.complete(CompletedTransaction(9, 1, 2, False))
    transactions.reset([(30, 3), (10, 1), (20, 2)])
    assert transactions.first_unstable_offset == 10
    assert not transactions.has_unreplicated
    assert transactions.last_stable_offset(CompletedTransaction(1, 10, 40, False)) == 20


@dataclass
class Known:
    producer_id: int
    first_offset: int
    last_offset: int | None = None


@given(st.lists(st.tuples(st.sampled_from(["start", "end", "replicate"]), st.integers(0, 9))))
def test_any_history_gives_what_a_list_of_all_transactions_gives(
    history: list[tuple[str, int]],
) -> None:
    transactions, known = OpenTransactions(), list[Known]()
    high_watermark = 0
    for offset, (operation, number) in enumerate(history, start=1):
        still_open = [each for each in known if each.last_offset is None]
        mine = [each for each in still_open if each.producer_id == number]
        if operation == "start" and not mine:
            transactions.start(offset, number)
            known.append(Known(number, offset))
        elif operation == "end" and mine:
            others = [each.first_offset for each in still_open if each.producer_id != number]
            completed = CompletedTransaction(number, mine[0].first_offset, offset, False)
            expected = min(others, default=offset + 1)
            assert transactions.last_stable_offset(completed) == expected
            transactions.complete(completed)
            mine[0].last_offset = offset
        elif operation == "replicate":
            high_watermark = max(high_watermark, offset - number)
            transactions.forget_unreplicated_below(high_watermark)
        undecided = [each.first_offset for each in known if each.last_offset is None]
        unstable = [
            each.first_offset
            for each in known
            if each.last_offset is None or each.last_offset >= high_watermark
        ]
        assert transactions.first_undecided_offset == min(undecided, default=None)
        assert transactions.first_unstable_offset == min(unstable, default=None)
