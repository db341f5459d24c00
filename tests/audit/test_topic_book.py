"""Rows joined to a book: states of buckets, what a group lost, read twice and how late it was."""

import pytest

from headwater.audit.rows import Row, decode_row, encode_row
from headwater.audit.topic_book import AMENDED, OPEN, SETTLED, make_book

MINUTE_MS = 60_000


def stored(start_ms: int, first: int, count: int, **others: object) -> Row:
    return {
        "version": 1,
        "tier": "broker",
        "topic": "orders",
        "partition": 0,
        "source": "orders",
        "from_offset": first,
        "to_offset": first + count,
        "time": start_ms + MINUTE_MS,
        "time_bucket_start": start_ms,
        "time_bucket_end": start_ms + MINUTE_MS,
        "count": count,
        "first_offset": first,
        "last_offset": first + count - 1,
        "time_max": start_ms + 100,
        **others,
    }


def committed(from_offset: int, *points: tuple[int, int], **others: object) -> Row:
    return {
        "version": 1,
        "tier": "group",
        "group": "billing",
        "topic": "orders",
        "partition": 0,
        "source": "offsets",
        "from_offset": from_offset,
        "to_offset": from_offset + 1,
        "first_committed": points[0][1],
        "committed": points[-1][1],
        "points": [list(point) for point in points],
        **others,
    }


def test_a_bucket_is_open_then_settled_and_amended_if_more_comes() -> None:
    rows = [stored(0, 0, 5), stored(MINUTE_MS, 5, 5)]
    now_ms = 4 * MINUTE_MS
    book = make_book("orders", rows, from_ms=0, to_ms=10**9, now_ms=now_ms - MINUTE_MS)
    assert [bucket.state for bucket in book.buckets] == [SETTLED, OPEN]
    late = stored(0, 10, 1, time=9 * MINUTE_MS, late_count=1, lateness_ms_max=1_000)
    book = make_book("orders", [*rows, late], from_ms=0, to_ms=10**9, now_ms=10 * MINUTE_MS)
    assert [bucket.state for bucket in book.buckets] == [AMENDED, SETTLED]
    assert (book.buckets[0].count, book.buckets[0].late_count) == (6, 1)


def test_a_group_is_told_by_what_it_committed() -> None:
    rows = [
        stored(0, 0, 10),
        stored(MINUTE_MS, 10, 10, aborted_count=0),
        committed(0, (5_000, 10), (8_000, 12)),
        committed(1, (9_000, 9), (10_000, 15), went_back_count=0),
    ]
    book = make_book("orders", rows, from_ms=0, to_ms=10**9, now_ms=0, log_starts={0: 18})
    (group,) = book.groups
    assert (group.out_count, group.out_by_bucket) == (15, {0: 10, MINUTE_MS: 5})
    assert (group.doubled_count, group.went_back_count) == (3, 1)
    assert group.missing_count == 3
    assert group.latency_ms_max == 4_900
    assert len(book.alarms) == 2


def test_only_the_time_that_was_asked_for_counts() -> None:
    rows = [stored(0, 0, 10), stored(MINUTE_MS, 10, 4), committed(0, (5_000, 12))]
    book = make_book("orders", rows, from_ms=MINUTE_MS, to_ms=2 * MINUTE_MS, now_ms=0)
    assert (book.count, book.groups[0].out_count) == (4, 2)
    assert make_book("payments", rows, from_ms=0, to_ms=10**9, now_ms=0).buckets == []


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{",
        b"[]",
        b"1",
        b"\xff",
        b'{"version":2}',
        b'{"version":1,"tier":"broker"}',
        b'{"version":1,"tier":[]}',
        b'{"version":1,"tier":{}}',
        pytest.param(b"[" * 100_000, id="deep"),
    ],
)
def test_what_is_no_row_is_passed_over(value: bytes) -> None:
    assert decode_row(value) is None


def test_a_row_is_read_as_it_was_written() -> None:
    row = stored(0, 0, 3)
    record = encode_row(row)
    assert decode_row(record.value) == row
    assert record.key != encode_row(stored(0, 3, 3)).key
