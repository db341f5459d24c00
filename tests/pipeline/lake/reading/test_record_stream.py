import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater.pipeline.lake.errors import LakeError
from headwater.pipeline.lake.lake_table import LakeTable
from headwater.pipeline.lake.reading.record_stream import records_in_order
from headwater.pipeline.lake.replay.plan import oldest_first, pieces
from headwater.pipeline.lake.replay.position import (
    ReplaySubject,
    positions_from_text,
    positions_to_text,
)
from tests.support.spark.lake_disk import LakeDisk
from tests.support.spark.lakes import DAY_MS, START_MS, archive, record, records_table


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    days=st.lists(st.integers(0, 3), min_size=1, max_size=60),
    cuts=st.sets(st.integers(1, 59), max_size=4),
    from_offset=st.integers(0, 60),
    batch_rows=st.integers(1, 9),
)
def test_files_that_overlap_give_offsets_in_order(
    days: list[int], cuts: set[int], from_offset: int, batch_rows: int
) -> None:
    table = LakeTable("/lake", files=LakeDisk())
    bounds = sorted({0, len(days), *(cut for cut in cuts if cut < len(days))})
    for batch_id, (first, last) in enumerate(itertools.pairwise(bounds)):
        rows = [
            record(0, offset, time_ms=START_MS + days[offset] * DAY_MS)
            for offset in range(first, last)
        ]
        archive(
            table,
            rows,
            before={("orders", 0): first},
            after={("orders", 0): last},
            batch_id=batch_id,
        )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headwater.pipeline.lake.reading.record_stream.BATCH_ROWS", batch_rows)
        found = [
            offset
            for rows in records_in_order(
                table.reader(["offset"]), table.files(), from_offset=from_offset
            )
            for offset in rows.column("offset").to_pylist()
        ]
    assert found == list(range(from_offset, len(days)))


def test_pieces_come_oldest_first_and_in_order_of_each_partition() -> None:
    batches = {
        number: [
            records_table(
                [record(number, offset, time_ms=1000 * offset + number) for offset in range(10)]
            )
        ]
        for number in (0, 1)
    }
    streams = {
        number: pieces(number, some, from_ms=2000, until_ms=8001, row_count_max=2)
        for number, some in batches.items()
    }
    sent = [
        (piece.partition, piece.rows.column("offset").to_pylist(), piece.next_offset)
        for piece in oldest_first(streams)
    ]
    assert sent == [
        (0, [2, 3], 4),
        (1, [2, 3], 4),
        (0, [4, 5], 6),
        (1, [4, 5], 6),
        (0, [6, 7], 8),
        (1, [6, 7], 8),
        (0, [8], 9),
    ]


@given(
    st.dictionaries(st.integers(0, 40), st.integers(0, 2**62), max_size=30),
    st.integers(1, 12),
    st.one_of(st.none(), st.integers(0, 10**13)),
)
def test_positions_come_back_from_their_texts(
    positions: dict[int, int], target_count: int, from_ms: int | None
) -> None:
    subject = ReplaySubject("orders", from_ms)
    texts = positions_to_text(subject, positions, target_count)
    assert all(0 <= number < target_count for number in texts)
    assert positions_from_text(subject, texts.values(), "g") == positions
    if texts:
        with pytest.raises(LakeError, match="another replay"):
            positions_from_text(ReplaySubject("payments", from_ms), texts.values(), "g")


def test_a_position_that_has_no_room_is_told() -> None:
    with pytest.raises(LakeError, match="more partitions"):
        positions_to_text(ReplaySubject("orders"), dict.fromkeys(range(1000), 10**12), 1)
