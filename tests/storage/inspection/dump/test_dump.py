"""What `log dump` shows of the other files, as JSON, and of any bytes whatever."""

import tracemalloc
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.ids import TopicPartition
from headwater.storage.checkpoints import LOG_START, OffsetCheckpoint
from headwater.storage.directories.broker_metadata import BrokerMetadata, write_broker_metadata
from headwater.storage.directories.partition_metadata import write_topic_id
from headwater.storage.disk.files import DiskFiles
from headwater.storage.inspection.dump.dump import OFFSET_CHECKPOINTS, DumpOptions, dump_file
from headwater.storage.inspection.dump.items import FileStart
from headwater.storage.inspection.read_only_files import ReadOnlyFiles
from headwater.wire.records import (
    Record,
    encode_batch,
)
from tests.support.logs.dumps import DEEP, LOG_NAME, items_of, json_of, text_of, write_log
from tests.support.logs.varied_log import HEADERS, write_varied_log
from tests.support.logs.verification import overwrite


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A partition's directory with something of everything."""
    write_varied_log(DiskFiles(), str(tmp_path / "topic-0"))
    return tmp_path / "topic-0"


# -- small files ---------------------------------------------------------------------------------


def test_aborted_transactions_and_producers(log: Path) -> None:
    lines, _ = text_of(log / f"{0:020d}.txnindex")
    assert lines == [
        "version: 0 producerId: 7 firstOffset: 4 lastOffset: 7 lastStableOffset: 2",
        "version: 0 producerId: 7 firstOffset: 12 lastOffset: 15 lastStableOffset: 2",
        "version: 0 producerId: 9 firstOffset: 2 lastOffset: 16 lastStableOffset: 17",
    ]
    lines, _ = text_of(log / f"{26:020d}.snapshot")
    assert [line.split(" lastTimestamp")[0] for line in lines] == [
        "producerId: 7 producerEpoch: 0 coordinatorEpoch: 0 "
        "currentTxnFirstOffset: OptionalLong.empty",
        "producerId: 9 producerEpoch: 0 coordinatorEpoch: 0 "
        "currentTxnFirstOffset: OptionalLong[17]",
    ]
    assert " firstSequence: 6 lastSequence: 7 lastOffset: 13 offsetDelta: 1 " in lines[0]


def test_text_files(tmp_path: Path) -> None:
    files = DiskFiles()
    identifier = UUID(int=1 << 100)
    checkpoint = OffsetCheckpoint(files, str(tmp_path / LOG_START))
    checkpoint.write({TopicPartition("a-b", 3): 17})
    write_topic_id(files, str(tmp_path), identifier)
    write_broker_metadata(files, str(tmp_path), BrokerMetadata("c l", 4, identifier))
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n5 17\n")
    shown = {path.name: text_of(path) for path in tmp_path.iterdir()}
    assert shown == {
        LOG_START: (["topic: a-b partition: 3 offset: 17"], []),
        "partition.metadata": (["version: 0 topicId: AAAAEAAAAAAAAAAAAAAAAA"], []),
        "meta.properties": (
            ["version: 1 nodeId: 4 clusterId: c l directoryId: AAAAEAAAAAAAAAAAAAAAAA"],
            [],
        ),
        "leader-epoch-checkpoint": (["epoch: 0 startOffset: 0", "epoch: 5 startOffset: 17"], []),
    }


@pytest.mark.parametrize("name", OFFSET_CHECKPOINTS)
def test_every_checkpoint_is_known(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"0\n1\nt 0 5\n")
    assert text_of(tmp_path / name) == (["topic: t partition: 0 offset: 5"], [])


def test_snapshots_of_the_metadata_log(tmp_path: Path) -> None:
    batch = encode_batch([Record(0, 0, None, b"x")])
    for name, line in (
        ("bootstrap.checkpoint", "KRaft bootstrap snapshot"),
        (f"{12:020d}-{3:010d}.checkpoint", "Snapshot end offset: 12, epoch: 3"),
    ):
        (tmp_path / name).write_bytes(batch)
        lines, complaints = text_of(tmp_path / name)
        assert (lines[0], len(lines), complaints) == (line, 2, [])


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("notes.txt", "this is not a file of a Kafka log directory, by its name."),
        ("5.index", "its name does not begin with an offset of 20 digits"),
        (".kafka_cleanshutdown", "this marks a clean shutdown and holds no data"),
        (f"{0:020d}.snapshot", "The snapshot has 7 bytes, too few for its header."),
        ("leader-epoch-checkpoint", "line 1 is 'foreign'"),
        ("partition.metadata", "it should have a line with a version and one with a topic id."),
    ],
)
def test_a_file_that_cannot_be_shown_gets_one_sentence(
    tmp_path: Path, name: str, sentence: str
) -> None:
    path = tmp_path / name
    path.write_bytes(b"foreign")
    lines, complaints = text_of(path)
    assert lines == []
    assert len(complaints) == 1
    assert complaints[0].startswith(f"{path}: {sentence}")


def test_files_that_are_not_there_and_directories(tmp_path: Path) -> None:
    for name in (LOG_NAME, "meta.properties", LOG_START):
        _, (complaint,) = text_of(tmp_path / name)
        assert complaint == f"{tmp_path / name}: it cannot be read: No such file or directory."
    _, (complaint,) = text_of(tmp_path)
    assert "`headwater log verify` takes directories" in complaint


def test_a_log_by_any_name_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "saved.log"
    path.write_bytes(encode_batch([Record(0, 0, None, b"x")]))
    lines, complaints = text_of(path)
    assert (len(lines), complaints) == (2, [])


# -- JSON ----------------------------------------------------------------------------------------


def test_json_has_all_that_the_text_has(log: Path) -> None:
    first, start, *rest = json_of(log / LOG_NAME, DEEP, print_data=True)
    assert first == {"type": "file", "path": str(log / LOG_NAME)}
    assert start == {"type": "log", "starting_offset": 0}
    batches = [item for item in rest if item["type"] == "batch"]
    records = [item for item in rest if item["type"] == "record"]
    assert [batch["record_count"] for batch in batches][:3] == [2, 1, 1]
    assert {batch["compression"] for batch in batches} >= {"none", "gzip"}
    assert sum(batch["record_count"] for batch in batches) == len(records)
    assert [record["offset"] for record in records] == list(range(26))
    assert records[3]["control_type"] == "COMMIT"
    no_key, no_value, empty, binary = records[18:22]
    assert (no_key["key"], no_key["value"]) == (None, "no key")
    assert (no_value["key"], no_value["value"]) == ("no value", None)
    assert empty["headers"] == [
        {"key": "trace", "value_base64": "Af8="},
        {"key": "empty", "value": None},
    ]
    assert len(HEADERS) == 2
    assert (binary["key"], binary["value_base64"]) == ("clé", "AP9iaW5hcnkK")


def test_json_of_every_file_has_its_types(log: Path) -> None:
    (log / "partition.metadata").write_text("version: 0\ntopic_id: AAAAEAAAAAAAAAAAAAAAAA")
    types = {
        path.name: {item["type"] for item in json_of(path)} - {"file", "log"}
        for path in log.iterdir()
    }
    assert types[f"{26:020d}.index"] == {"offset_index_entry"}
    assert types[f"{26:020d}.timeindex"] == {"time_index_entry"}
    assert types[f"{0:020d}.txnindex"] == {"aborted_transaction"}
    assert types[f"{26:020d}.snapshot"] == {"producer"}
    assert types["leader-epoch-checkpoint"] == {"leader_epoch"}
    assert types["partition.metadata"] == {"partition_metadata"}


def test_json_decoders_name_their_fields(tmp_path: Path) -> None:
    path = write_log(tmp_path, encode_batch([Record(0, 0, b"k", b"v")]))
    record = json_of(
        path, DEEP, print_data=True, key_decoder="hex", value_decoder="base64", skip_batches=True
    )[-1]
    assert (record["key_hex"], record["value_base64"]) == ("6b", "dg==")


def test_json_tells_faults_where_they_are(tmp_path: Path) -> None:
    batch = encode_batch([Record(0, 0, b"k", b"v")])
    path = write_log(tmp_path, batch, batch)
    overwrite(path, len(batch) + 62, b"\x7f")
    *_, shown, fault = json_of(path)
    assert (shown["type"], shown["crc_is_valid"]) == ("batch", False)
    assert (fault["type"], fault["kind"]) == ("fault", "checksum")
    assert (fault["path"], fault["position"]) == (str(path), len(batch))


# -- any bytes -----------------------------------------------------------------------------------

NAMES = [
    LOG_NAME,
    *(f"{0:020d}.{suffix}" for suffix in ("index", "timeindex", "txnindex", "snapshot")),
    "leader-epoch-checkpoint",
    "partition.metadata",
    "meta.properties",
    LOG_START,
    "bootstrap.checkpoint",
]


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_any_bytes_under_any_name_are_shown_or_explained(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    directory = tmp_path_factory.getbasetemp() / "any"
    directory.mkdir(exist_ok=True)
    sound = b"".join(encode_batch([Record(n, 5, b"k", b"v")]) for n in range(3))
    if data.draw(st.booleans()):
        content = bytearray(data.draw(st.binary(max_size=300)))
    else:
        content = bytearray(sound)
        for _ in range(data.draw(st.integers(1, 4))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    (directory / LOG_NAME).write_bytes(sound)
    (directory / name).write_bytes(content)
    for options in (DEEP, DumpOptions(index_sanity_check=True)):
        items = items_of(directory / name, options)
        assert isinstance(items[0], FileStart)
        shown = json_of(directory / name, options, print_data=True)
        assert len(shown) == len(items)
        text_of(directory / name, options=options, print_data=True)


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    batch = encode_batch([Record(n, 0, None, b"x" * 1000) for n in range(16)])
    path = tmp_path / LOG_NAME
    with path.open("wb") as file:
        for number in range(1500):
            file.write((16 * number).to_bytes(8, "big") + batch[8:])
    assert path.stat().st_size > 20 << 20
    tracemalloc.start()
    try:
        count = sum(1 for _ in dump_file(ReadOnlyFiles(), str(path), DEEP))
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 1500 * 17 + 2
    assert peak_bytes < 6 << 20
