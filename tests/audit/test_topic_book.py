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


def test_what_is_settled_is_amended_by_what_comes_later_and_does_not_open_again() -> None:
    rows = [stored(0, 0, 5), stored(0, 5, 1, time=8 * MINUTE_MS, lateness_ms_max=7 * MINUTE_MS)]
    for minute, state in ((2, OPEN), (3, SETTLED), (7, SETTLED), (8, AMENDED), (20, AMENDED)):
        known = [row for row in rows if row["time"] <= minute * MINUTE_MS]
        book = make_book("orders", known, from_ms=0, to_ms=10**9, now_ms=minute * MINUTE_MS)
        assert (minute, book.buckets[0].state) == (minute, state)
    # Who comes after such a record is waited for as long.
    later = stored(9 * MINUTE_MS, 6, 1)
    for minute, state in ((17, OPEN), (19, SETTLED)):
        book = make_book(
            "orders", [*rows, later], from_ms=0, to_ms=10**9, now_ms=minute * MINUTE_MS
        )
        assert (minute, book.buckets[1].state) == (minute, state)


def deleted(second: int, log_start: int, **others: object) -> Row:
    """A row that counts nothing, as a leader tells it where nothing else came."""
    told: Row = {"log_starts": [[second * 1_000, log_start]], "log_start_offset": log_start}
    return apart(20, 20, time=60_000, **told | others)


def apart(from_offset: int, to_offset: int, **others: object) -> Row:
    row = stored(0, from_offset, 0, to_offset=to_offset, leader_epoch=3)
    return row | {"time_bucket_start": None, "time_bucket_end": None} | others


@pytest.mark.parametrize(
    ("points", "missing"),
    [
        ([(5, 10), (8, 20)], 5),
        ([(5, 10), (8, 12)], 5),
        ([(5, 10), (5.5, 20)], 0),
        ([(5, 10), (6, 16), (8, 20)], 5),
        ([(5, 10), (5.5, 15), (8, 20)], 0),
        ([(5, 18), (8, 10), (9, 20)], 0),
        ([(8, 20)], 0),
    ],
)
def test_what_was_deleted_before_a_group_went_past_it_is_missing(
    points: list[tuple[float, int]], missing: int
) -> None:
    commits = [(int(second * 1_000), offset) for second, offset in points]
    rows = [stored(0, 0, 20), deleted(6, 15), committed(0, *commits, count=len(points))]
    book = make_book("orders", rows, from_ms=0, to_ms=10**9, now_ms=0, log_starts={0: 15})
    (group,) = book.groups
    assert group.missing_count == missing
    assert group.out_count + missing == max(15, *(offset for _, offset in points))


def test_of_commits_that_share_a_point_only_what_is_sure_is_told() -> None:
    """One of them may have been made before the records were deleted."""
    for second, missing in ((6, 0), (7, 5)):
        merged = committed(0, (5_000, 10), (second * 1_000 + 900, 20), count=9)
        rows = [stored(0, 0, 20), deleted(6, 15, log_starts=[[6_500, 15]]), merged]
        book = make_book("orders", rows, from_ms=0, to_ms=10**9, now_ms=0)
        assert book.groups[0].missing_count == missing


def test_a_topic_that_was_made_anew_has_lost_nothing_of_the_old_one() -> None:
    rows = [
        deleted(6, 500, source="the old one"),
        stored(0, 0, 20, time=2 * MINUTE_MS),
        committed(0, (130_000, 5), (140_000, 20)),
    ]
    book = make_book("orders", rows, from_ms=0, to_ms=10**9, now_ms=0)
    assert (book.groups[0].missing_count, book.alarms) == (0, [])


def test_a_row_that_was_written_twice_tells_its_facts_once() -> None:
    refused = apart(5, 5, gaps_refused=2, duplicates_refused=1)
    again = refused | {"time": refused["time"] + 1}
    book = make_book("orders", [refused, refused, again], from_ms=0, to_ms=10**9, now_ms=0)
    assert (book.gaps_refused, book.duplicates_refused) == (4, 2)
    keys = {encode_row(row).key for row in (refused, again, stored(0, 5, 1))}
    assert len(keys) == 3


def test_what_is_lost_was_counted_and_what_takes_its_offsets_counts_too() -> None:
    rows = [
        stored(0, 0, 10),
        stored(MINUTE_MS, 10, 4, source="the old one"),
        apart(10, 7, lost_offsets=3),
        stored(MINUTE_MS, 7, 5),
        committed(0, (5_000, 12)),
    ]
    book = make_book("orders", rows, from_ms=0, to_ms=10**9, now_ms=0)
    assert (book.count, book.lost_count, book.stored_count) == (19, 3, 16)
    assert "3 records that were stored are lost" in book.alarms[0]
    assert book.groups[0].out_by_bucket == {0: 7, MINUTE_MS: 7}


@pytest.mark.parametrize("value", [None, 5, "x", [1], [[1]], [["a", "b"]], [[-1, 2**70]], {"a": 1}])
def test_a_row_that_somebody_else_wrote_is_no_error(value: object) -> None:
    names = ("time", "count", "first_offset", "log_starts", "points", "points_ms", "went_back")
    numbers = ("first_committed", "committed", "time_bucket_start", "time_max", "source")
    for name in (*names, *numbers):
        rows = [stored(0, 0, 10), stored(0, 10, 2) | {name: value}]
        rows += [committed(0, (5_000, 4)), committed(1, (6_000, 9)) | {name: value}]
        known = [decode_row(encode_row(row).value) for row in rows]
        sound = [row for row in known if row is not None]
        book = make_book("orders", sound, from_ms=0, to_ms=10**9, now_ms=0, log_starts={0: 3})
        assert book.count >= 10


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
        b'{"version":1,"tier":"broker","topic":"t","source":"s","partition":0,'
        b'"from_offset":0,"to_offset":9223372036854775808}',
        b'{"version":1,"tier":"broker","topic":"t","source":"s","partition":-1,'
        b'"from_offset":0,"to_offset":1}',
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
