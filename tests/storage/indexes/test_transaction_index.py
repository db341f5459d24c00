import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.checks import InvariantError
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.disk.files import read_bytes, write_atomically
from headwater.storage.disk.handles import HandleCache
from headwater.storage.errors import CorruptIndexError
from headwater.storage.indexes.transaction_index import (
    ENTRY_SIZE,
    AbortedTransaction,
    TransactionIndex,
)
from headwater.storage.producers.open_transactions import CompletedTransaction, OpenTransactions

DIRECTORY = "/data/orders-3"
PATH = f"{DIRECTORY}/00000000000000000000.txnindex"


class World:
    """A disk, and the index on it."""

    def __init__(self, content: bytes | None = None) -> None:
        self.disk = FaultyDisk(directories=[DIRECTORY])
        if content is not None:
            write_atomically(self.disk, PATH, content)
        self.index = self.open()

    def open(self) -> TransactionIndex:
        return TransactionIndex(self.disk, HandleCache(self.disk, 4), PATH)


def entry(
    number: int, *, first: int | None = None, stable: int | None = None
) -> AbortedTransaction:
    """A transaction of producer `number` whose marker is at ten times the number."""
    last = number * 10
    return AbortedTransaction(
        number,
        last - 5 if first is None else first,
        last,
        last + 1 if stable is None else stable,
    )


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.index.close()


def test_the_bytes_are_kafkas(world: World) -> None:
    world.index.append(AbortedTransaction(1, 2, 300, 0x0102030405060708))
    assert read_bytes(world.disk, PATH) == bytes.fromhex(
        "0000 0000000000000001 0000000000000002 000000000000012c 0102030405060708"
    )
    assert ENTRY_SIZE == 34


def test_there_is_no_file_before_the_first_abort(world: World) -> None:
    assert list(world.index) == []
    assert world.index.collect_aborted(0, 100) == ([], False)
    world.index.truncate_to(0)
    world.index.reset()
    world.index.sync()
    world.index.sanity_check(0)
    assert not world.disk.exists(PATH)
    world.index.append(entry(1))
    assert world.disk.exists(PATH)
    assert list(world.open()) == [entry(1)]


def test_entries_stand_in_the_order_of_their_markers(world: World) -> None:
    world.index.append(entry(2))
    for number in (1, 2):
        with pytest.raises(InvariantError):
            world.index.append(entry(number))
    reopened = world.open()
    with pytest.raises(InvariantError):
        reopened.append(entry(2))
    reopened.append(entry(3))
    assert list(reopened) == [entry(2), entry(3)]


def test_a_search_finds_what_overlaps(world: World) -> None:
    for number in (1, 2, 3):
        world.index.append(entry(number))  # Offsets 5-10, 15-20, 25-30.
    assert world.index.collect_aborted(0, 5) == ([], True)
    assert world.index.collect_aborted(0, 6) == ([entry(1)], True)
    assert world.index.collect_aborted(10, 11) == ([entry(1)], True)
    assert world.index.collect_aborted(11, 15) == ([], True)
    assert world.index.collect_aborted(11, 31) == ([entry(2), entry(3)], True)
    assert world.index.collect_aborted(11, 32) == ([entry(2), entry(3)], False)
    assert world.index.collect_aborted(31, 99) == ([], False)


def test_an_older_transaction_that_ended_later_is_found(world: World) -> None:
    """While it was open it held the last stable offset back, which keeps the search going."""
    world.index.append(entry(1, stable=2))
    world.index.append(entry(2, first=2))
    assert world.index.collect_aborted(0, 4) == ([entry(2, first=2)], True)


def test_truncation_removes_what_was_aborted_behind_it(world: World) -> None:
    for number in range(1, 6):
        world.index.append(entry(number))
    world.index.truncate_to(51)
    assert world.index.entry_count == 5
    world.index.truncate_to(30)
    assert list(world.index) == [entry(1), entry(2)]
    world.index.append(entry(3))
    world.index.reset()
    assert list(world.index) == []
    world.index.append(entry(1))
    assert list(world.open()) == [entry(1)]


def test_a_torn_tail_is_no_entry_and_is_overwritten() -> None:
    whole = b"".join(
        (0).to_bytes(2, "big") + b"".join(value.to_bytes(8, "big") for value in entry(number))
        for number in (1, 2)
    )
    world = World(whole[:-1])
    assert list(world.index) == [entry(1)]
    with pytest.raises(CorruptIndexError, match="67 bytes"):
        world.index.sanity_check(0)
    world.index.append(entry(2))
    assert read_bytes(world.disk, PATH) == whole
    world.index.sanity_check(0)


@pytest.mark.parametrize(
    "entries",
    [
        [entry(1)],  # Ends at offset 10, before the segment.
        [entry(5), entry(4)],
        [entry(5), entry(5)],
        [entry(5, first=51)],
    ],
)
def test_entries_that_cannot_be_of_this_segment_are_found_out(
    entries: list[AbortedTransaction],
) -> None:
    content = b"".join(
        b"\0\0" + b"".join(value.to_bytes(8, "big") for value in fields) for fields in entries
    )
    with pytest.raises(CorruptIndexError, match=PATH):
        World(content).index.sanity_check(20)


def test_an_unknown_version_is_refused() -> None:
    world = World(b"\0\1" + bytes(32))
    with pytest.raises(CorruptIndexError, match="version 1"):
        world.index.collect_aborted(0, 100)


def test_a_synced_index_survives_a_crash_with_its_name(world: World) -> None:
    world.index.append(entry(1))
    world.index.sync()
    for seed in range(20):
        after = world.disk.crash(random.Random(seed))
        index = TransactionIndex(after, HandleCache(after, 4), PATH)
        assert list(index) == [entry(1)]


def test_a_moved_index_is_read_and_written_at_its_new_place(world: World) -> None:
    world.index.moved_to(PATH + ".swap")  # There is no file yet, and none to rename.
    world.index.moved_to(PATH)
    world.index.append(entry(1))
    world.disk.rename(PATH, PATH + ".deleted")
    world.index.moved_to(PATH + ".deleted")
    world.index.append(entry(2))
    assert list(world.index) == [entry(1), entry(2)]
    assert len(read_bytes(world.disk, PATH + ".deleted")) == 2 * ENTRY_SIZE


def test_more_entries_than_are_read_at_once(world: World) -> None:
    expected = [entry(number) for number in range(1, 301)]
    for each in expected:
        world.index.append(each)
    assert list(world.index) == expected
    world.index.truncate_to(2_005)
    assert list(world.index) == expected[:200]


# -- against a naive list -------------------------------------------------------------------------

histories = st.lists(
    st.tuples(
        st.sampled_from(["start", "abort", "commit", "truncate", "reopen"]), st.integers(0, 4)
    ),
    max_size=40,
)


@given(histories)
def test_a_search_stops_early_and_misses_nothing(history: list[tuple[str, int]]) -> None:
    world = World()
    transactions, started = OpenTransactions(), dict[int, int]()
    naive: list[AbortedTransaction] = []
    offset = 0
    for operation, number in history:
        offset += 1
        if operation == "start" and number not in started:
            started[number] = offset
            transactions.start(offset, number)
        elif operation in ("abort", "commit") and number in started:
            ended = CompletedTransaction(number, started.pop(number), offset, operation == "abort")
            if ended.is_aborted:
                stable = transactions.last_stable_offset(ended)
                naive.append(AbortedTransaction(*ended[:3], last_stable_offset=stable))
                world.index.append(naive[-1])
            transactions.complete(ended)
        elif operation == "truncate" and naive:
            # Only the last few markers go, and what stays must still be found.
            cut = naive[-1].last_offset - number
            naive = [each for each in naive if each.last_offset < cut]
            world.index.truncate_to(cut)
        elif operation == "reopen":
            world.index = world.open()
    assert list(world.index) == naive
    world.index.sanity_check(0)
    for fetch_offset in range(0, offset + 2, 3):
        for upper_bound in range(fetch_offset, offset + 3):
            found = world.index.collect_aborted(fetch_offset, upper_bound)
            assert found.transactions == [
                each
                for each in naive
                if each.last_offset >= fetch_offset and each.first_offset < upper_bound
            ]
