import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.client.spool.files.frames import encode_frame, scan_frames
from headwater.client.spool.files.record import (
    InvalidSpooledRecordError,
    SpooledRecord,
    decode_record,
    encode_record,
)

_CONTENT = st.none() | st.binary(max_size=40)
_RECORDS = st.builds(
    SpooledRecord,
    topic=st.text(max_size=20),
    partition=st.none() | st.integers(0, 2**31 - 1),
    key=_CONTENT,
    value=_CONTENT,
    headers=st.lists(st.tuples(st.text(max_size=10), _CONTENT), max_size=3).map(tuple),
    timestamp_ms=st.integers(-1, 2**62),
)


@given(_RECORDS)
def test_a_record_comes_back_as_it_was(record: SpooledRecord) -> None:
    assert decode_record(encode_record(record)) == record


def test_a_header_key_that_is_no_utf8_keeps_its_bytes() -> None:
    key = b"\xff\xfe".decode("utf-8", "surrogateescape")
    record = SpooledRecord("t", None, None, b"", ((key, b"x"),), 0)
    assert decode_record(encode_record(record)) == record


def test_more_headers_than_the_format_holds_are_refused() -> None:
    record = SpooledRecord("t", None, None, None, (("h", None),) * 65536, 0)
    with pytest.raises(InvalidSpooledRecordError):
        encode_record(record)


@given(st.lists(st.binary(min_size=1, max_size=30), min_size=1, max_size=8), st.data())
def test_any_damage_leaves_the_frames_before_it(contents: list[bytes], data: st.DataObject) -> None:
    frames = [encode_frame(7 + index, content) for index, content in enumerate(contents)]
    whole = b"".join(frames)
    at = data.draw(st.integers(0, len(whole) - 1))
    damaged = bytearray(whole)
    damaged[at] ^= data.draw(st.integers(1, 255))
    intact_count, end = 0, 0
    while end + len(frames[intact_count]) <= at:
        end += len(frames[intact_count])
        intact_count += 1
    for torn in (bytes(damaged), whole[:at]):
        scanned = scan_frames(torn, 7)
        assert [frame.content for frame in scanned.frames] == contents[:intact_count]
        assert scanned.size_bytes == end


@given(st.binary(min_size=1, max_size=30), st.integers(0, 2**40), st.integers(1, 2**20))
def test_a_frame_counts_only_at_its_own_number(content: bytes, number: int, off_by: int) -> None:
    frame = encode_frame(number, content)
    assert len(scan_frames(frame, number).frames) == 1
    assert scan_frames(frame, number + off_by).frames == []


def test_zeros_are_no_frames() -> None:
    assert scan_frames(bytes(4096), 0).frames == []
