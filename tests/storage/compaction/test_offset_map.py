"""The map of compaction against a dictionary."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.checks import InvariantError
from headwater.storage.compaction.offset_map import ENTRY_BYTES, NOT_FOUND, OffsetMap


@given(st.lists(st.tuples(st.binary(max_size=2), st.booleans())), st.integers(2, 40))
def test_it_is_a_bounded_dictionary(puts: list[tuple[bytes, bool]], slot_count: int) -> None:
    offsets = OffsetMap(slot_count * ENTRY_BYTES)
    model: dict[bytes, int] = {}
    for offset, (key, _) in enumerate(puts):
        fits = key in model or len(model) < offsets.key_count_max
        assert offsets.put(key, offset) == fits
        if fits:
            model[key] = offset
    for key in {key for key, _ in puts} | {b"never put"}:
        assert offsets.get(key) == model.get(key, NOT_FOUND)
    assert offsets.key_count == len(model)
    assert offsets.latest_offset == max(model.values(), default=NOT_FOUND)


@given(st.integers(2, 10_000), st.floats(0.5, 1.5))
def test_it_stays_within_its_memory_and_keeps_a_slot_empty(
    slot_count: int, load_factor: float
) -> None:
    offsets = OffsetMap(slot_count * ENTRY_BYTES, load_factor)
    assert offsets.memory_bytes <= slot_count * ENTRY_BYTES
    assert 1 <= offsets.key_count_max < offsets.memory_bytes // ENTRY_BYTES


def test_nearly_all_of_the_memory_is_used() -> None:
    offsets = OffsetMap(1 << 20)
    assert offsets.memory_bytes > 0.99 * (1 << 20)
    assert offsets.key_count_max > 0.89 * (1 << 20) / ENTRY_BYTES


def test_it_is_found_full_exactly_when_it_is() -> None:
    offsets = OffsetMap(100 * ENTRY_BYTES)
    accepted = [offsets.put(b"%d" % number, number) for number in range(200)]
    assert accepted.index(False) == offsets.key_count_max
    assert offsets.utilization == pytest.approx(0.9, abs=0.03)
    assert offsets.put(b"0", 500), "a key that it has needs no room"
    assert offsets.get(b"0") == 500


def test_a_small_need_makes_a_small_table() -> None:
    offsets = OffsetMap(1 << 30, key_count_expected=10)
    assert offsets.memory_bytes < 1000
    assert all(offsets.put(b"%d" % number, number) for number in range(10))


def test_progress_without_keys() -> None:
    offsets = OffsetMap(1000)
    offsets.advance_to(7)
    offsets.advance_to(3)
    assert offsets.latest_offset == 7


def test_memory_for_less_than_a_key_is_refused() -> None:
    with pytest.raises(InvariantError):
        OffsetMap(ENTRY_BYTES)
