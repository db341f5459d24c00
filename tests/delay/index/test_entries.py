"""Entries: bytes that compare as keys do, and marks that take entries back."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from headwater.delay.index.entries import (
    by_due,
    find_live,
    live_entries,
    mark_count,
    pack,
    pack_mark,
    unpack,
)
from headwater.wire.delayed.copies import OrderKey

_NUMBERS = st.integers(0, 2**63 - 1)
_KEYS = st.builds(OrderKey, _NUMBERS, _NUMBERS, _NUMBERS)


@given(st.lists(_KEYS, min_size=2))
def test_bytes_compare_as_keys_do(keys: list[OrderKey]) -> None:
    assert [unpack(entry) for entry in sorted(map(pack, keys))] == sorted(keys)
    for one, other in pairwise(keys):
        assert (pack(one) < pack(other)) == (one < other)


@given(_KEYS, _NUMBERS)
def test_a_mark_is_never_taken_for_an_entry(key: OrderKey, at_offset: int) -> None:
    assert mark_count(pack(key)) == 0
    assert mark_count(pack(key) + pack_mark(key, at_offset)) == 1


def test_a_mark_takes_back_what_stands_before_it() -> None:
    first, again, other = OrderKey(5, 1, 1), OrderKey(5, 7, 1), OrderKey(5, 2, 2)
    history = [pack(first), pack(other), pack_mark(first, 7), pack(again)]
    assert list(live_entries(lambda: [b"".join(history)], 0, 10)) == [pack(other), pack(again)]
    # Wherever it is cut into pieces.
    assert list(live_entries(lambda: history, 0, 10)) == [pack(other), pack(again)]
    assert find_live(history, 5, 1) == pack(again)
    assert find_live(history[:3], 5, 1) is None
    assert find_live(history, 5, 3) is None


def test_a_message_taken_back_by_the_record_that_armed_it_is_gone() -> None:
    key = OrderKey(5, 9, 1)
    assert list(live_entries(lambda: [pack(key) + pack_mark(key, 9)], 0, 10)) == []


def test_a_history_is_read_for_a_range_of_due_times() -> None:
    keys = [OrderKey(due, due, due) for due in range(10)]
    history = b"".join(map(pack, keys)) + pack_mark(keys[3], 20) + pack_mark(keys[8], 21)
    found = [unpack(entry) for entry in live_entries(lambda: [history], 2, 6)]
    assert found == [keys[2], keys[4], keys[5]]


def test_groups_keep_their_order() -> None:
    keys = [OrderKey(12, 0, 0), OrderKey(3, 1, 1), OrderKey(11, 2, 2), OrderKey(9, 3, 3)]
    groups = by_due(b"".join(map(pack, keys)) + pack_mark(keys[0], 4), 10)
    assert groups == {
        0: pack(keys[1]) + pack(keys[3]),
        1: pack(keys[0]) + pack(keys[2]) + pack_mark(keys[0], 4),
    }


def test_an_offset_inside_other_numbers_is_not_found() -> None:
    zeros = OrderKey(1, 0, 256)
    assert find_live([pack(zeros)], 1, 0) is None
    assert find_live([pack(zeros)], 1, 256) == pack(zeros)
