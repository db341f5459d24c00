import random

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from headwater.sim.disk.faulty_disk import FaultyDisk, PowerCut, SimulatedCrash
from headwater.storage.disk.files import DiskFiles, write_atomically
from headwater.storage.errors import CorruptSnapshotError
from headwater.storage.producers.entry import BatchMetadata, ProducerEntry
from headwater.storage.producers.snapshot import (
    decode_snapshot,
    encode_snapshot,
    latest_snapshot,
    list_snapshots,
    load_latest_snapshot,
    read_snapshot,
    remove_snapshots_above,
    remove_snapshots_below,
    remove_stray_snapshots,
    snapshot_path,
    write_snapshot,
)
from tests.support.tiers import rounds

DIRECTORY = "/data/orders-3"

# Written by Apache Kafka 4.1.2 after an idempotent producer had sent 20 records in one batch.
KAFKAS_BYTES = bytes.fromhex(
    "0001 0db43d52 00000001 0000000000000000 0000 00000013 0000000000000013 00000013"
    "000001a1e100a777 ffffffff ffffffffffffffff"
)
KAFKAS_ENTRIES = [
    ProducerEntry(
        producer_id=0,
        producer_epoch=0,
        last_timestamp=0x01A1E100A777,
        batches=(BatchMetadata(19, 19, 19, 0x01A1E100A777),),
    )
]


@st.composite
def snapshot_entries(draw: st.DrawFn) -> ProducerEntry:
    """Entries as they come out of a snapshot: with the last batch, if any, and its timestamp."""
    timestamp = draw(st.integers(-1, 2**63 - 1))
    batches: tuple[BatchMetadata, ...] = ()
    if draw(st.booleans()):
        delta = draw(st.integers(0, 2**31 - 1))
        last_offset = draw(st.integers(delta, 2**63 - 1))
        batches = (BatchMetadata(draw(st.integers(-1, 2**31 - 1)), last_offset, delta, timestamp),)
    return ProducerEntry(
        draw(st.integers(0, 2**63 - 1)),
        draw(st.integers(-1, 2**15 - 1)),
        draw(st.integers(-1, 2**31 - 1)),
        timestamp,
        draw(st.none() | st.integers(0, 2**63 - 1)),
        batches,
    )


def new_disk(*offsets: int, seed: int = 0) -> FaultyDisk:
    disk = FaultyDisk(seed, directories=[DIRECTORY])
    for offset in offsets:
        write_snapshot(disk, DIRECTORY, offset, [ProducerEntry(offset, 0)])
    return disk


# -- bytes ----------------------------------------------------------------------------------------


def test_the_bytes_are_kafkas() -> None:
    assert decode_snapshot(KAFKAS_BYTES) == KAFKAS_ENTRIES
    assert encode_snapshot(KAFKAS_ENTRIES) == KAFKAS_BYTES


def test_no_producers_take_ten_bytes() -> None:
    assert len(encode_snapshot([])) == 10
    assert decode_snapshot(encode_snapshot([])) == []


@given(st.lists(snapshot_entries(), max_size=8))
def test_what_is_encoded_is_decoded(entries: list[ProducerEntry]) -> None:
    assert decode_snapshot(encode_snapshot(entries)) == entries


def test_only_the_last_batch_is_kept() -> None:
    batches = tuple(BatchMetadata(number, 10 + number, 0, 77) for number in range(5))
    entry = ProducerEntry(1, 0, 3, 77, 10, batches)
    assert decode_snapshot(encode_snapshot([entry])) == [entry._replace(batches=batches[-1:])]


def test_every_single_bit_counts() -> None:
    sound = encode_snapshot([*KAFKAS_ENTRIES, ProducerEntry(7, 1, 2, 3, 4)])
    for position in range(len(sound)):
        for bit in range(8):
            damaged = bytearray(sound)
            damaged[position] ^= 1 << bit
            with pytest.raises(CorruptSnapshotError):
                decode_snapshot(bytes(damaged))


def test_every_length_counts() -> None:
    for sound in (KAFKAS_BYTES, encode_snapshot([])):
        for size in range(len(sound)):
            with pytest.raises(CorruptSnapshotError):
                decode_snapshot(sound[:size])
        with pytest.raises(CorruptSnapshotError):
            decode_snapshot(sound + b"\0")


def test_a_count_that_lies_is_noticed_even_with_a_sound_checksum() -> None:
    for count in (2**31 - 1, -1, 2, 0):
        checked = count.to_bytes(4, "big", signed=True) + KAFKAS_BYTES[10:]
        lying = b"\0\1" + crc32c(checked).to_bytes(4, "big") + checked
        with pytest.raises(CorruptSnapshotError, match="does not fit"):
            decode_snapshot(lying)


@given(st.binary(max_size=100))
def test_any_bytes_are_refused_in_order(data: bytes) -> None:
    with pytest.raises(CorruptSnapshotError):
        decode_snapshot(data)


# -- files ----------------------------------------------------------------------------------------


def test_snapshots_are_named_by_their_offset() -> None:
    disk = new_disk(0, 42, 12345678901234567890 % 2**63)
    for name in ("00000000000000000050.snapshot.tmp", "00000000000000000060.snapshot.deleted"):
        disk.open(f"{DIRECTORY}/{name}", create=True)
    assert disk.exists(f"{DIRECTORY}/00000000000000000042.snapshot")
    assert list_snapshots(disk, DIRECTORY) == [0, 42, 3122306864379792082]


def test_the_latest_snapshot_may_be_bounded() -> None:
    disk = new_disk(10, 20, 30)
    assert latest_snapshot([10, 20, 30]) == 30
    assert latest_snapshot([10, 20, 30], at_or_below=29) == 20
    assert latest_snapshot([10, 20, 30], at_or_below=20) == 20
    assert latest_snapshot([10, 20, 30], at_or_below=9) is None
    assert load_latest_snapshot(disk, DIRECTORY, at_or_below=9) is None


def test_loading_passes_over_damaged_snapshots_and_removes_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = new_disk(10, 20)
    write_atomically(disk, snapshot_path(DIRECTORY, 30), KAFKAS_BYTES[:-1])
    write_atomically(disk, snapshot_path(DIRECTORY, 40), b"")
    with pytest.raises(CorruptSnapshotError, match=r"00000000000000000030\.snapshot"):
        read_snapshot(disk, DIRECTORY, 30)
    loaded = load_latest_snapshot(disk, DIRECTORY)
    assert loaded == (20, [ProducerEntry(20, 0)])
    assert list_snapshots(disk, DIRECTORY) == [10, 20]
    assert len(caplog.records) == 2


def test_removal_on_either_side() -> None:
    disk = new_disk(10, 20, 30, 40)
    remove_snapshots_above(disk, DIRECTORY, 30)
    assert list_snapshots(disk, DIRECTORY) == [10, 20, 30]
    remove_snapshots_below(disk, DIRECTORY, 20)
    assert list_snapshots(disk, DIRECTORY) == [20, 30]


@pytest.mark.parametrize(
    ("segments", "left"),
    [
        ([0, 20, 30], [20, 30, 50]),
        ([0, 10], [10, 50]),
        ([0, 60], []),
        ([0, 50], [50]),
        ([], [50]),
    ],
)
def test_strays_go_but_for_the_one_behind_all_segments(
    segments: list[int], left: list[int]
) -> None:
    disk = new_disk(10, 20, 30, 50)
    remove_stray_snapshots(disk, DIRECTORY, segments)
    assert list_snapshots(disk, DIRECTORY) == left


def test_the_real_disk_does_it_too(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = str(tmp_path_factory.mktemp("partition"))
    write_snapshot(DiskFiles(), directory, 20, KAFKAS_ENTRIES)
    assert load_latest_snapshot(DiskFiles(), directory) == (20, KAFKAS_ENTRIES)


# -- crashes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(rounds(20, 200)))
def test_a_crash_leaves_a_snapshot_whole_or_absent(seed: int) -> None:
    entries = [ProducerEntry(number, 0) for number in range(200)]
    for cut_at in range(20):
        disk = new_disk(10, seed=seed)
        disk.before_operation = PowerCut(cut_at)
        finished = True
        try:
            write_snapshot(disk, DIRECTORY, 20, entries)
        except SimulatedCrash:
            finished = False
        after = disk.crash(random.Random(seed))
        found = list_snapshots(after, DIRECTORY)
        assert found == [10, 20] if finished else found in ([10], [10, 20])
        for offset in found:
            read_snapshot(after, DIRECTORY, offset)
        if finished:
            return
    pytest.fail("the write never finished")


@pytest.mark.parametrize("seed", range(rounds(20, 200)))
def test_what_truncation_removed_does_not_come_back(seed: int) -> None:
    disk = new_disk(10, 20, 30, seed=seed)
    remove_snapshots_above(disk, DIRECTORY, 10)
    assert list_snapshots(disk.crash(random.Random(seed)), DIRECTORY) == [10]
