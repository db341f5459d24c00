import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.reused_memory import KEPT_SIZE_MIN, Kept, ReusedMemory

KEPT_SIZE_MAX, KEPT_BYTES_MAX = LIMITS = Kept(2 << 20, 16 << 20)


@pytest.mark.parametrize(
    "size", [1, KEPT_SIZE_MIN - 1, KEPT_SIZE_MIN, 1_000_001, KEPT_SIZE_MAX, KEPT_SIZE_MAX + 1]
)
def test_a_buffer_is_writable_and_as_long_as_asked(size: int) -> None:
    view = ReusedMemory(LIMITS).take(size)
    assert len(view) == size
    assert not view.readonly
    view[size - 1] = 7
    assert view[size - 1] == 7


def test_memory_is_used_again_when_no_view_of_it_is_left() -> None:
    memory = ReusedMemory(LIMITS)
    view = memory.take(1_000_000)
    owner = view.obj
    piece = view[10:20]
    del view
    assert memory.take(1_000_000).obj is not owner, "a slice of it is still held"
    del piece
    taken = [memory.take(990_000), memory.take(950_000)]
    assert any(each.obj is owner for each in taken)
    assert taken[0].obj is not taken[1].obj


def test_what_is_kept_is_bounded() -> None:
    memory = ReusedMemory(LIMITS)
    views = [memory.take(KEPT_SIZE_MAX) for _ in range(2 * KEPT_BYTES_MAX // KEPT_SIZE_MAX)]
    owners = {id(each.obj) for each in views}
    kept = [each.obj for each in views[: KEPT_BYTES_MAX // KEPT_SIZE_MAX]]
    assert len(owners) == len(views)
    del views
    again = [memory.take(KEPT_SIZE_MAX) for _ in range(len(kept))]
    assert {id(each.obj) for each in again} == {id(each) for each in kept}


def test_buffers_of_a_size_that_is_no_longer_asked_for_make_room() -> None:
    memory = ReusedMemory(LIMITS)
    views = [memory.take(KEPT_SIZE_MIN) for _ in range(KEPT_BYTES_MAX // KEPT_SIZE_MIN)]
    first = memory.take(1_000_000).obj
    assert memory.take(1_000_000).obj is not first, "all that is kept is in use"
    views.clear()
    first = memory.take(1_000_000).obj
    assert memory.take(1_000_000).obj is first


@given(
    steps=st.lists(
        st.tuples(st.sampled_from([65_536, 100_000, 131_072, 300_000]), st.booleans()), max_size=40
    )
)
def test_no_two_holders_ever_share_memory(steps: list[tuple[int, bool]]) -> None:
    memory = ReusedMemory(LIMITS)
    held: list[tuple[memoryview, int]] = []
    for mark, (size, is_kept) in enumerate(steps):
        view = memory.take(size)
        view[0] = view[size - 1] = mark
        if is_kept:
            # Whoever holds only a part of it holds it.
            held.append((view[size - 1 :], mark))
        elif held:
            held.pop(0)
        assert all(each[0] == expected for each, expected in held)


def test_a_large_claim_costs_no_memory_until_bytes_come() -> None:
    def resident_bytes() -> int:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    before = resident_bytes()
    view = ReusedMemory(LIMITS).take(512 * 1024 * 1024)
    view[:10] = b"0123456789"
    assert resident_bytes() - before < 16 * 1024 * 1024
