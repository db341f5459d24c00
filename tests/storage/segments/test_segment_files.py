"""The names of a partition directory's files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.checks import InvariantError
from headwater.storage.segments.segment_files import (
    CLEANED,
    DELETED,
    LOG,
    OFFSET_INDEX,
    SEGMENT_SUFFIXES,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    SegmentFileName,
    parse_segment_file_name,
    segment_file_name,
    segment_path,
)


def test_names_carry_twenty_digits_of_the_base_offset() -> None:
    assert segment_file_name(0, LOG) == "00000000000000000000.log"
    assert segment_file_name(170410, OFFSET_INDEX) == "00000000000000170410.index"
    assert segment_file_name(239430, TIME_INDEX, DELETED) == (
        "00000000000000239430.timeindex.deleted"
    )
    assert segment_path("/data/topic-0", 42, SNAPSHOT) == (
        "/data/topic-0/00000000000000000042.snapshot"
    )


def test_a_negative_base_offset_has_no_name() -> None:
    with pytest.raises(InvariantError):
        segment_file_name(-1, LOG)


@given(
    st.integers(0, 2**63 - 1),
    st.sampled_from((*SEGMENT_SUFFIXES, SNAPSHOT)),
    st.sampled_from(("", CLEANED, SWAP, DELETED)),
)
def test_every_name_is_taken_apart_into_what_it_was_made_of(
    base_offset: int, suffix: str, stage: str
) -> None:
    name = segment_file_name(base_offset, suffix, stage)
    assert parse_segment_file_name(name) == SegmentFileName(base_offset, suffix, stage)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "leader-epoch-checkpoint",
        "partition.metadata",
        "0.log",
        "00000000000000000000",
        "00000000000000000000.txt",
        "00000000000000000000.log.bak",
        "00000000000000000000.log.deleted.deleted",
        "000000000000000000000.log",
        "0000000000000000000x.log",
        "-0000000000000000001.log",
        "00000000000000000000.kafka_cleanshutdown",
        "\u0660" * 20 + ".log",
    ],
)
def test_foreign_names_belong_to_no_segment(name: str) -> None:
    assert parse_segment_file_name(name) is None
