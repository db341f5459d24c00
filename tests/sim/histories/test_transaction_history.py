import pytest

from headwater.base.ids import TopicPartition
from headwater.sim.clients.committed_reader import Visible
from headwater.sim.histories.history import PropertyViolated, Stored
from headwater.sim.histories.transaction_history import (
    Ending,
    Transaction,
    TransactionHistory,
    check_copied_once,
)

SOURCE, TARGET = TopicPartition("source", 0), TopicPartition("target", 0)


def begin(history: TransactionHistory, *values: bytes) -> Transaction:
    transaction = history.begin("copier")
    transaction.values = {TARGET: list(values)}
    return transaction


def visible(transaction: Transaction, first_offset: int) -> list[Visible]:
    return [
        Visible(TARGET, offset, transaction.name, value)
        for offset, value in enumerate(transaction.values[TARGET], first_offset)
    ]


def test_of_an_unknown_end_all_or_nothing_is_seen() -> None:
    for count, is_whole in ((0, True), (1, False), (2, True)):
        history = TransactionHistory()
        transaction = begin(history, b"x", b"y")
        seen = visible(transaction, 0)[:count]
        if is_whole:
            history.check_all(seen)
        else:
            with pytest.raises(PropertyViolated, match="as a whole"):
                history.check_all(seen)


def test_a_committed_transaction_is_seen() -> None:
    history = TransactionHistory()
    transaction = begin(history, b"x")
    transaction.ending = Ending.COMMITTED
    history.check_all(visible(transaction, 3))
    with pytest.raises(PropertyViolated, match="stays"):
        history.check_all([])


def test_an_aborted_transaction_is_not_seen() -> None:
    history = TransactionHistory()
    transaction = begin(history, b"x")
    transaction.ending = Ending.ABORTED
    history.check_all([])
    with pytest.raises(PropertyViolated, match="aborted"):
        history.see(visible(transaction, 0))


def test_what_was_seen_stays() -> None:
    history = TransactionHistory()
    first, second = begin(history, b"x"), begin(history, b"y")
    history.see(visible(first, 0))
    with pytest.raises(PropertyViolated, match="what was seen stays"):
        history.see(visible(second, 0))
    with pytest.raises(PropertyViolated, match="what was committed stays"):
        history.check_all([])


def test_nothing_foreign_is_seen() -> None:
    with pytest.raises(PropertyViolated, match="only what was sent"):
        TransactionHistory().see([Visible(TARGET, 0, b"somebody", b"x")])


def test_a_copy_is_the_source_once_and_in_order() -> None:
    source = {SOURCE: [Stored(0, b"a"), Stored(1, b"b")]}

    def check(*values: bytes) -> None:
        copied = [Visible(TARGET, 5 + n, b"t", value) for n, value in enumerate(values)]
        check_copied_once(source, copied, {SOURCE: TARGET})

    check(b"a", b"b")
    for wrong in ((b"a",), (b"b", b"a"), (b"a", b"a", b"b"), (b"a", b"b", b"b")):
        with pytest.raises(PropertyViolated, match="copied once and in order"):
            check(*wrong)
