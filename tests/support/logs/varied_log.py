"""A partition's log with something of everything in it, for the tests of tools that read files."""

from __future__ import annotations

from headwater.sim.campaigns.logs import NOW_MS, append_numbered, end_transaction, open_log
from headwater.storage.disk.files import FileSystem
from headwater.storage.log_config import LogConfig
from headwater.wire.records import Compression, Record, encode_batch

#: Small enough that a log of a few kilobytes has segments, and indexes with entries.
SMALL_SEGMENTS = LogConfig(segment_bytes=1500, index_interval_bytes=200)

HEADERS: tuple[tuple[str, bytes | None], ...] = (("trace", b"\x01\xff"), ("empty", None))


def varied_records(first_timestamp: int) -> list[Record]:
    """Null, empty, plain and binary keys and values, with and without headers."""
    return [
        Record(0, first_timestamp, None, b"no key"),
        Record(1, first_timestamp + 2, b"no value", None),
        Record(2, first_timestamp + 1, b"", b"", HEADERS),
        Record(3, first_timestamp + 1, "clé".encode(), b"\x00\xffbinary\n"),
    ]


def write_varied_log(files: FileSystem, directory: str, config: LogConfig = SMALL_SEGMENTS) -> None:
    """Every codec, two leader epochs, transactions that commit, abort and stay open; closed."""
    log = open_log(files, directory, config)
    for number in range(4):
        timestamp = NOW_MS + number
        append_numbered(log, 2 * number, b"a", b"b", transactional=True, timestamp=timestamp)
        append_numbered(log, number, b"c", producer_id=9, transactional=True, timestamp=timestamp)
        end_transaction(log, 7, commit=number % 2 == 0)
    end_transaction(log, 9, commit=False)
    append_numbered(log, 4, b"open", producer_id=9, transactional=True, timestamp=NOW_MS + 9)
    for number in range(15):
        batch = encode_batch(
            varied_records(NOW_MS + 10 * number), compression=Compression(number % 5)
        )
        log.append_as_leader(batch, leader_epoch=number // 8, now_ms=NOW_MS)
    log.close()
