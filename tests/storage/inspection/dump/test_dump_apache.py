"""Our dump of our files is what Apache's dumper writes of them, line by line."""

from pathlib import Path

import pytest

from headwater.sim.campaigns.logs import NOW_MS, append, append_numbered, end_transaction, open_log
from headwater.storage.disk.files import DiskFiles
from headwater.storage.inspection.dump.dump import DumpOptions
from headwater.storage.log_config import LogConfig
from headwater.testing.apache_kafka import Installation, dump_log
from headwater.testing.apache_kafka.dump import ERRORS_FOLLOW
from headwater.wire.records import (
    MAGIC_V1,
    Compression,
    Record,
    TimestampType,
    encode_batch,
    encode_legacy,
)
from tests.support.kafka.node import require_apache_kafka
from tests.support.logs.dumps import DEEP, text_of, write_log
from tests.support.logs.varied_log import write_varied_log
from tests.support.logs.verification import overwrite

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def kafka() -> Installation:
    return require_apache_kafka()


def write_text_log(directory: Path) -> None:
    """A log whose keys and values are text on one line, with transactions and append time."""
    config = LogConfig(
        segment_bytes=1500,
        index_interval_bytes=200,
        message_timestamp_type=TimestampType.LOG_APPEND_TIME,
    )
    log = open_log(DiskFiles(), str(directory), config)
    for number in range(12):
        codec = Compression(number % 5)
        append(log, b"value", None, "é".encode(), compression=codec, now_ms=NOW_MS + number)
        append_numbered(log, 2 * number, b"a", b"b", transactional=True)
        end_transaction(log, 7, commit=number % 3 != 0)
    log.close()


def apache(kafka: Installation, files: list[Path], *flags: str) -> tuple[list[str], list[str]]:
    report, _, errors = dump_log(files, *flags, kafka=kafka).partition(f"{ERRORS_FOLLOW}\n")
    return report.splitlines(), errors.splitlines()


def ours(files: list[Path], options: DumpOptions, *, data: bool) -> tuple[list[str], list[str]]:
    lines: list[str] = []
    complaints: list[str] = []
    for path in files:
        shown, faults = text_of(path, options=options, print_data=data)
        lines += [f"Dumping {path}", *shown]
        complaints += faults
    return lines, complaints


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        ((), DumpOptions()),
        (("--deep-iteration",), DEEP),
        (("--print-data-log",), DEEP),
        (("--verify-index-only",), DumpOptions(verify_index_only=True)),
        (("--max-bytes", "700"), DumpOptions(max_bytes=700)),
    ],
)
def test_the_same_lines_for_every_file(
    kafka: Installation, tmp_path: Path, flags: tuple[str, ...], options: DumpOptions
) -> None:
    shows_data = "--print-data-log" in flags
    write_text_log(tmp_path / "text-0")
    if not shows_data:  # What is no text, or several lines of it, is shown in another way.
        write_varied_log(DiskFiles(), str(tmp_path / "varied-0"))
    files = sorted(tmp_path.glob("*/0*"))
    assert {path.suffix for path in files} == {
        ".log",
        ".index",
        ".timeindex",
        ".txnindex",
        ".snapshot",
    }
    assert ours(files, options, data=shows_data) == apache(kafka, files, *flags)


def test_the_same_lines_for_what_compaction_and_old_brokers_wrote(
    kafka: Installation, tmp_path: Path
) -> None:
    records = [Record(number, NOW_MS + number, b"key", b"value") for number in range(3)]
    write_log(
        tmp_path,
        encode_legacy(records, magic=0),
        encode_legacy([record._replace(offset=record.offset + 3) for record in records], magic=1),
        encode_legacy(
            [records[0]._replace(offset=6)],
            magic=MAGIC_V1,
            timestamp_type=TimestampType.LOG_APPEND_TIME,
        ),
        encode_batch(
            [],
            base_offset=7,
            last_offset_delta=2,
            producer_id=3,
            producer_epoch=1,
            base_sequence=4,
            max_timestamp=NOW_MS,
        ),
        encode_batch([Record(10, NOW_MS, b"deleted", None)], delete_horizon_ms=NOW_MS + 5),
    )
    files = sorted(tmp_path.iterdir())
    assert ours(files, DEEP, data=True) == apache(kafka, files, "--print-data-log")


def test_the_same_complaints_about_indexes(kafka: Installation, tmp_path: Path) -> None:
    write_varied_log(DiskFiles(), str(tmp_path / "topic-0"))
    index = tmp_path / "topic-0" / f"{26:020d}.index"
    time_index = index.with_suffix(".timeindex")
    overwrite(index, 3, b"\x01")
    overwrite(time_index, 19, b"\x01")
    files = [index, time_index]
    lines, complaints = apache(kafka, files)
    assert len(complaints) > 3
    assert ours(files, DumpOptions(), data=False) == (lines, complaints)
