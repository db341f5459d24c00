"""Walking log files batch by batch: sound ones, torn ones, old ones, and noise."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.sim.campaigns.logs import leader_batch
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.disk.files import File
from headwater.storage.segments.batch_scan import read_entry_header, scan_batches, validate_entry
from headwater.wire.records import (
    MAGIC_V0,
    MAGIC_V1,
    CorruptRecordError,
    InvalidRecordError,
    Record,
    UnsupportedCompressionError,
    encode_legacy,
)


def file_of(data: bytes) -> File:
    disk = FaultyDisk(directories=["/data"])
    file = disk.open("/data/log", create=True)
    file.write_at(0, data)
    return file


def batches_of(sizes: list[int]) -> list[bytes]:
    return [leader_batch(number * 2, b"x" * size) for number, size in enumerate(sizes)]


def starts_of(batches: list[bytes]) -> list[int]:
    return [sum(map(len, batches[:number])) for number in range(len(batches))]


value_sizes = st.lists(st.integers(0, 300), min_size=1, max_size=8)


@given(value_sizes, st.integers(12, 900))
def test_every_batch_is_found_whatever_the_chunk_size(sizes: list[int], chunk_bytes: int) -> None:
    batches = batches_of(sizes)
    data = b"".join(batches)
    found = list(scan_batches(file_of(data), 0, len(data), chunk_bytes=chunk_bytes))
    assert [bytes(batch.data) for batch in found] == batches
    assert [batch.position for batch in found] == starts_of(batches)
    assert [batch.header.base_offset for batch in found] == [2 * n for n in range(len(sizes))]


@given(value_sizes, st.data())
def test_the_walk_goes_from_boundary_to_boundary(sizes: list[int], data: st.DataObject) -> None:
    batches = batches_of(sizes)
    file = file_of(b"".join(batches))
    boundaries = [*starts_of(batches), file.size()]
    first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(sizes))] * 2)))
    found = scan_batches(file, boundaries[first], boundaries[last], chunk_bytes=100)
    assert [bytes(batch.data) for batch in found] == batches[first:last]


@given(value_sizes, st.integers(1, 60), st.integers(12, 900))
def test_a_torn_end_is_noticed_behind_the_last_whole_batch(
    sizes: list[int], cut: int, chunk_bytes: int
) -> None:
    batches = batches_of(sizes)
    data = b"".join(batches)[:-cut]
    found = []
    with pytest.raises(CorruptRecordError):
        for batch in scan_batches(file_of(data), 0, len(data), chunk_bytes=chunk_bytes):
            found.append(bytes(batch.data))
    assert found == batches[:-1]


@given(st.binary(max_size=400), st.integers(12, 500))
def test_noise_ends_the_walk_with_an_error_and_never_goes_on_for_ever(
    noise: bytes, chunk_bytes: int
) -> None:
    walked = 0
    try:
        for batch in scan_batches(file_of(noise), 0, len(noise), chunk_bytes=chunk_bytes):
            assert batch.position == walked
            walked += batch.header.size_bytes
    except CorruptRecordError:
        assert walked < len(noise)
    else:
        assert walked == len(noise)


def test_a_file_that_was_cut_while_it_is_walked_ends_the_walk() -> None:
    disk = FaultyDisk(directories=["/data"])
    data = b"".join(batches_of([50, 50, 50]))
    file = disk.open("/data/log", create=True)
    file.write_at(0, data[:-10])
    reads: list[str] = []

    def count(operation: str, _path: str) -> None:
        reads.append(operation)
        assert len(reads) < 50, "the walk does not end"

    disk.before_operation = count
    with pytest.raises(CorruptRecordError):
        list(scan_batches(file, 0, len(data)))


@pytest.mark.parametrize("length", [-(2**31), -12, -1, 0, 13, 48, 2**31 - 1])
def test_a_length_that_cannot_be_is_refused(length: int) -> None:
    data = bytearray(leader_batch(0, b"value") + leader_batch(1, b"value"))
    data[8:12] = length.to_bytes(4, "big", signed=True)
    with pytest.raises(CorruptRecordError):
        list(scan_batches(file_of(bytes(data)), 0, len(data)))


@pytest.mark.parametrize("magic", [MAGIC_V0, MAGIC_V1])
def test_old_messages_are_batches_of_one_offset(magic: int) -> None:
    records = [Record(number, 1000 + number, None, b"v%d" % number) for number in range(5)]
    data = encode_legacy(records, magic=magic)
    found = list(scan_batches(file_of(data), 0, len(data), chunk_bytes=50))
    assert [batch.header.base_offset for batch in found] == [0, 1, 2, 3, 4]
    assert {batch.header.next_offset - batch.header.base_offset for batch in found} == {1}
    assert b"".join(bytes(batch.data) for batch in found) == data
    expected = [-1] * 5 if magic == MAGIC_V0 else [1000, 1001, 1002, 1003, 1004]
    assert [batch.header.max_timestamp for batch in found] == expected
    for batch in found:
        validate_entry(batch.data, 0, batch.header)


@pytest.mark.parametrize("magic", [MAGIC_V0, MAGIC_V1])
def test_a_flipped_bit_of_an_old_message_fails_its_checksum(magic: int) -> None:
    data = bytearray(encode_legacy([Record(3, 1000, b"key", b"value")], magic=magic))
    data[-2] ^= 4
    (batch,) = scan_batches(file_of(bytes(data)), 0, len(data))
    with pytest.raises(CorruptRecordError, match="offset 3"):
        validate_entry(batch.data, 0, batch.header)


def test_a_flipped_bit_behind_the_checksum_of_a_batch_is_noticed_wherever_it_is() -> None:
    sound = leader_batch(5, b"value")
    rng = random.Random(5)
    for position in range(21, len(sound)):
        data = bytearray(sound)
        data[position] ^= 1 << rng.randrange(8)
        header = read_entry_header(data)
        with pytest.raises((CorruptRecordError, InvalidRecordError, UnsupportedCompressionError)):
            validate_entry(data, 0, header)
