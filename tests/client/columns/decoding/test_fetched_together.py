"""Partitions of one answer decoded together have the records that each has alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.client.columns.arrow.batches import ArrowPart, columns_to_arrow
from headwater.client.columns.decoding import fetched_columns, fetched_together
from headwater.client.columns.decoding.consumer_records import columns_to_records
from headwater.client.columns.decoding.fetched_columns import decode_fetched
from headwater.client.columns.decoding.fetched_together import FetchedTogether, decode_together
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.fetch.fetched_partition import AbortedRange, FetchedPartition
from headwater.client.fetch.isolation import IsolationLevel
from headwater.wire.records import Record, encode_batch
from tests.support.tiers import rounds
from tests.support.values.fetched_batches import PARTITION, batch_lists, read_plainly


@pytest.fixture(autouse=True, scope="module")
def few_records_too() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patcher:
        patcher.setattr(fetched_columns, "ARRAY_RECORDS_MIN", 1)
        yield


def in_one_frame(
    shares: Sequence[bytes], offsets: Sequence[int] | None = None
) -> list[FetchedPartition]:
    """What an answer has of each partition, with something else in front of each."""
    frame = memoryview(b"".join(b"between" + share for share in shares))
    found = []
    position = 0
    for index, share in enumerate(shares):
        position += len(b"between")
        offset = 0 if offsets is None else offsets[index]
        part = frame[position : position + len(share)]
        found.append(FetchedPartition(PARTITION, offset, part))
        position += len(share)
    return found


def batch(first: int, count: int, size_bytes: int = 20) -> bytes:
    return encode_batch(
        [Record(first + i, 7, None, b"%0*d" % (size_bytes, first + i)) for i in range(count)]
    )


def records_of(
    fetched: FetchedPartition, together: FetchedTogether
) -> tuple[bool, list[ConsumerRecord]]:
    """Whether it was decoded with others, and its records in either case."""
    columns = together.take(fetched)
    if columns is not None:
        return True, columns_to_records(*PARTITION, columns)
    alone = decode_fetched(fetched, fetched.fetch_offset)
    return False, [
        record for columns in alone for record in columns_to_records(*PARTITION, columns)
    ]


@settings(max_examples=rounds(60, 1500), deadline=None)
@given(st.data())
def test_each_has_what_reading_it_batch_by_batch_has(data: st.DataObject) -> None:
    lists = data.draw(st.lists(batch_lists(), min_size=1, max_size=4))
    starts = [data.draw(st.integers(0, 60)) for _ in lists]
    fetches = in_one_frame([b"".join(batches) for batches in lists], starts)
    together = FetchedTogether(fetches)
    for fetched in data.draw(st.permutations(fetches)):
        _, records = records_of(fetched, together)
        assert records == read_plainly(fetched, fetched.fetch_offset)


def test_the_usual_answer_is_decoded_together_and_copied_in_one_go() -> None:
    shares = [batch(100 * i, 30) + batch(100 * i + 30, 20) for i in range(4)]
    fetches = in_one_frame(shares, [5, 100, 249, 300])
    together = FetchedTogether(fetches)
    columns = [together.take(fetched) for fetched in fetches]
    assert [None if each is None else len(each) for each in columns] == [45, 50, 1, 50]
    parts = [ArrowPart("t", i, each) for i, each in enumerate(columns) if each is not None]
    assert len({id(part.columns.data) for part in parts}) == 1
    offsets = [*range(5, 50), *range(100, 150), 249, *range(300, 350)]
    assert columns_to_arrow(parts)["value"].to_pylist() == [b"%020d" % each for each in offsets]
    # Also in an order in which they do not stand in the frame.
    backwards = columns_to_arrow(parts[::-1])["value"].to_pylist()
    assert backwards[:50] == [b"%020d" % each for each in range(300, 350)]
    assert sorted(backwards) == [b"%020d" % each for each in offsets]


def test_each_is_given_out_once() -> None:
    first, second = in_one_frame([batch(0, 10), batch(0, 10)])
    together = FetchedTogether([first, second])
    assert together.take(second) is not None
    assert together.take(second) is None
    assert together.take(first) is not None


def test_a_damage_leaves_everybody_alone() -> None:
    bad = bytearray(batch(0, 10))
    bad[-5] ^= 1  # In the last value.
    fetches = in_one_frame([batch(0, 10), bytes(bad)])
    assert decode_together(fetches) == {}
    assert len(decode_together(fetches, check_crc=False)) == 2


def test_what_was_aborted_is_not_decoded_with_others() -> None:
    good, _ = in_one_frame([batch(0, 10), batch(0, 10)])
    aborted = FetchedPartition(
        PARTITION,
        0,
        good.buffer,
        isolation_level=IsolationLevel.READ_COMMITTED,
        aborted=[AbortedRange(0, 9)],
    )
    assert decode_together([good, aborted]) == {}


def test_buffers_of_their_own_are_not_taken_for_one() -> None:
    [first], [second] = in_one_frame([batch(0, 10)]), in_one_frame([batch(50, 10)])
    assert decode_together([first, second]) == {}


def test_no_more_than_is_worth_it_is_decoded_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    share = batch(0, 10)
    monkeypatch.setattr(fetched_together, "GROUP_BYTES", 2 * len(share))
    fetches = in_one_frame([share] * 5)
    together = FetchedTogether(fetches)
    assert [together.take(fetched) is not None for fetched in fetches] == [True] * 4 + [False]
    monkeypatch.setattr(fetched_together, "GROUP_RECORDS", 19)
    together = FetchedTogether(fetches)
    assert [together.take(fetched) for fetched in fetches] == [None] * 5
