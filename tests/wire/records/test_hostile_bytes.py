"""Whatever the bytes are, reading them gives records or one of the errors of this package.

Nothing else is raised, and nothing is allocated for what a length or a header merely claims. The
checksum is repaired or ignored throughout: it keeps damage out, not malice.
"""

import struct
import subprocess
import sys
import textwrap
import tracemalloc
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.wire.records import (
    HEADER_SIZE,
    Buffer,
    Compression,
    CorruptRecordError,
    DecompressedTooLargeError,
    InvalidRecordError,
    Record,
    UnsupportedCompressionError,
    compress,
    convert_to_v2,
    decode_batch,
    decode_records,
    encode_batch,
    encode_legacy,
    iter_batch_headers,
    read_batch_header,
    validate_batch,
)
from headwater.wire.records.batch_header import HEADER_STRUCT, write_crc
from tests.support.values.record_strategies import compressions, record_lists

MEBIBYTE = 1 << 20
ERRORS = (CorruptRecordError, InvalidRecordError, UnsupportedCompressionError)


def walk(data: Buffer) -> list[Record]:
    records: list[Record] = []
    for position, header in iter_batch_headers(data):
        validate_batch(data, position, header, check_crc=False)
        assert header.next_offset > header.base_offset >= 0
        assert 0 <= header.record_count <= header.last_offset_delta + 1
        records += decode_batch(data, position, check_crc=False, max_decompressed_bytes=MEBIBYTE)
    return records


READERS: list[Callable[[Buffer], list[Record]]] = [
    decode_batch,
    walk,
    lambda data: decode_batch(data, check_crc=False, max_decompressed_bytes=MEBIBYTE),
    lambda data: list(decode_records(data, check_crc=False, max_decompressed_bytes=MEBIBYTE)),
    lambda data: decode_batch(
        convert_to_v2(data, check_crc=False, base_offset=0, max_decompressed_bytes=MEBIBYTE)
    ),
]


def read_every_way(data: Buffer) -> None:
    for reader in READERS:
        try:
            records = reader(data)
        except ERRORS:
            continue
        for record in records:
            assert -(2**63) <= record.offset < 2**63
            assert -(2**63) <= record.timestamp < 2**63
            assert record.key is None or type(record.key) is bytes
            assert record.value is None or type(record.value) is bytes
            assert all(type(key) is str for key, _ in record.headers)


@st.composite
def damaged(draw: st.DrawFn, data: bytes, first: int = 0) -> bytes:
    """The bytes with some overwritten, put in or taken out, from `first` on."""
    mutable = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        position = draw(st.integers(min(first, len(mutable)), len(mutable)))
        match draw(
            st.sampled_from(("overwrite", "overwrite", "insert", "remove", "cut", "number"))
        ):
            case "overwrite":
                mutable[position : position + 1] = draw(st.binary(min_size=1, max_size=1))
            case "insert":
                mutable[position:position] = draw(st.binary(max_size=12))
            case "remove":
                del mutable[position : position + draw(st.integers(1, 12))]
            case "cut":
                del mutable[position:]
            case "number":
                number = draw(st.sampled_from((-(2**31), -2, -1, 0, 1, 2**31 - 1)))
                mutable[position : position + 4] = struct.pack(">i", number)
    return bytes(mutable)


@given(st.binary(max_size=300))
def test_random_bytes(data: bytes) -> None:
    read_every_way(data)


@given(st.binary(max_size=200), st.integers(0, 2), st.integers(-2, 2))
def test_random_bytes_of_the_right_magic_and_length(data: bytes, magic: int, off: int) -> None:
    after_length = bytes(4) + bytes((magic,)) + data
    read_every_way(struct.pack(">qi", 0, len(after_length) + off) + after_length)


@given(record_lists(), compressions, st.data())
def test_damaged_batches(
    records: list[Record], compression: Compression, data: st.DataObject
) -> None:
    read_every_way(data.draw(damaged(encode_batch(records, compression=compression))))


@given(record_lists(), compressions, st.data())
def test_damaged_sections_behind_a_sound_header(
    records: list[Record], compression: Compression, data: st.DataObject
) -> None:
    plain = encode_batch(records)
    section = data.draw(damaged(plain[HEADER_SIZE:]))
    section = compress(compression, section)
    header = read_batch_header(plain)._replace(
        attributes=int(compression),
        batch_length=49 + len(section),
        record_count=max(0, len(records) + data.draw(st.integers(-1, 1))),
    )
    batch = bytearray(HEADER_STRUCT.pack(*header) + section)
    write_crc(batch, 0, len(batch))
    read_every_way(batch)


@given(
    record_lists(with_headers=False),
    st.sampled_from((Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4)),
    st.integers(0, 1),
    st.data(),
)
def test_damaged_message_sets(
    records: list[Record], compression: Compression, magic: int, data: st.DataObject
) -> None:
    sound = encode_legacy(records, magic=magic, compression=compression)
    read_every_way(data.draw(damaged(sound)))


@given(
    record_lists(with_headers=False),
    st.sampled_from((Compression.GZIP, Compression.SNAPPY, Compression.LZ4)),
    st.integers(0, 1),
    st.data(),
)
def test_damaged_sets_inside_a_sound_wrapper(
    records: list[Record], compression: Compression, magic: int, data: st.DataObject
) -> None:
    inner = data.draw(damaged(encode_legacy(records, magic=magic)))
    value = compress(compression, inner)
    wrapped = encode_legacy([Record(records[-1].offset, 0, None, value)], magic=magic)
    mutable = bytearray(wrapped)
    mutable[17] = compression
    struct.pack_into(">I", mutable, 12, zlib.crc32(mutable[16:]))
    read_every_way(mutable)


def varint(number: int) -> bytes:
    raw = number << 1
    encoded = bytearray()
    while raw > 0x7F:
        encoded.append(raw & 0x7F | 0x80)
        raw >>= 7
    return bytes((*encoded, raw))


HUGE = varint(2**31 - 1)
TAIL = bytes(40)
#: Every length of a record in turn claims two gigabytes.
LYING_SECTIONS = {
    "record": HUGE + TAIL,
    "key": varint(48) + b"\0\0\0" + HUGE + TAIL,
    "value": varint(49) + b"\0\0\0\1" + HUGE + TAIL,
    "header count": varint(50) + b"\0\0\0\1\1" + HUGE + TAIL,
    "header key": varint(51) + b"\0\0\0\1\1\2" + HUGE + TAIL,
    "header value": varint(52) + b"\0\0\0\1\1\2\0" + HUGE + TAIL,
}


@pytest.mark.parametrize("compression", list(Compression))
@pytest.mark.parametrize("what", LYING_SECTIONS)
def test_lying_lengths_allocate_nothing(what: str, compression: Compression) -> None:
    section = compress(compression, LYING_SECTIONS[what])
    header = read_batch_header(encode_batch([Record(0, 0, None, None)]))
    header = header._replace(attributes=int(compression), batch_length=49 + len(section))
    batch = bytearray(HEADER_STRUCT.pack(*header) + section)
    write_crc(batch, 0, len(batch))
    assert peak_bytes_of(lambda: decode_batch(batch), ERRORS) < 256 << 10


@pytest.mark.parametrize("compression", list(Compression))
def test_a_lying_record_count_allocates_nothing(compression: Compression) -> None:
    section = compress(compression, bytes(100))
    header = read_batch_header(encode_batch([Record(0, 0, None, None)]))
    header = header._replace(
        attributes=int(compression),
        batch_length=49 + len(section),
        record_count=2**31 - 1,
        last_offset_delta=2**31 - 2,
    )
    batch = bytearray(HEADER_STRUCT.pack(*header) + section)
    write_crc(batch, 0, len(batch))
    assert peak_bytes_of(lambda: decode_batch(batch), InvalidRecordError) < 256 << 10


@pytest.mark.parametrize("compression", [kind for kind in Compression if kind])
def test_a_bomb_in_a_batch(compression: Compression) -> None:
    bomb = compress(compression, bytes(32 * MEBIBYTE))
    header = read_batch_header(encode_batch([Record(0, 0, None, None)]))
    header = header._replace(attributes=int(compression), batch_length=49 + len(bomb))
    batch = bytearray(HEADER_STRUCT.pack(*header) + bomb)
    write_crc(batch, 0, len(batch))
    peak_bytes = peak_bytes_of(
        lambda: decode_batch(batch, max_decompressed_bytes=MEBIBYTE), DecompressedTooLargeError
    )
    assert peak_bytes < 20 * MEBIBYTE


def peak_bytes_of(
    action: Callable[[], object], error: type[Exception] | tuple[type[Exception], ...]
) -> int:
    tracemalloc.start()
    try:
        with pytest.raises(error):
            action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


#: What codecs allocate in C or Rust no tracer sees, but a limit on the address space stops it.
CLAIMS_UNDER_A_LIMIT = """
    import resource, struct
    from headwater.wire.records import Compression, CorruptRecordError, decompress
    from headwater.wire.records.lz4_frame import with_standard_checksum

    used_kib = next(
        int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize")
    )
    limit = (used_kib << 10) + (192 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    zstd = bytes.fromhex("28b52ffd")
    claims = [
        (Compression.SNAPPY, b"\\xff\\xff\\xff\\xff\\x0f" + bytes(60)),
        (Compression.SNAPPY, b"\\xff\\xff\\xff\\x7f" + bytes(60)),
        (Compression.SNAPPY, b"\\x82SNAPPY\\0" + struct.pack(">iii", 1, 1, 2**31 - 1) + bytes(60)),
        (Compression.ZSTD, zstd + b"\\xe0" + struct.pack("<Q", 2**62) + bytes(60)),
        (Compression.ZSTD, zstd + b"\\xe0" + struct.pack("<Q", 2**40) + bytes(60)),
        (Compression.ZSTD, zstd + b"\\x00\\xff" + bytes.fromhex("fdff03") + bytes(60)),
        (Compression.LZ4, with_standard_checksum(
            bytes.fromhex("04224d186870") + struct.pack("<Q", 2**62) + bytes(60))),
        (Compression.GZIP, bytes.fromhex("1f8b08000000000000ff") + bytes(60)),
    ]
    for kind, data in claims:
        try:
            decompress(kind, data)
        except CorruptRecordError:
            print("refused")
        else:
            raise SystemExit(f"{kind} was believed")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc and limits the address space")
def test_claims_under_a_limit_on_the_address_space() -> None:
    script = textwrap.dedent(CLAIMS_UNDER_A_LIMIT)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["refused"] * 8
