"""The directories that Apache Kafka writes for other tests hold what they are said to hold."""

import pytest

from headwater.testing.apache_kafka import Dump, dump_log, parse_dump
from tests.support.kafka.data import COMPACTED_TOPICS, KafkaDataDir, shared_kafka_data_dirs
from tests.support.kafka.writer import CODECS

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module", params=["clean", "crashed"])
def data(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> KafkaDataDir:
    clean, crashed = shared_kafka_data_dirs(tmp_path_factory)
    return clean if request.param == "clean" else crashed


@pytest.fixture(scope="module")
def dump(data: KafkaDataDir) -> Dump:
    """Apache's own account of every log, offset index, transaction index and producer snapshot."""
    suffixes = (".log", ".txnindex", ".snapshot")
    files = sorted(
        path
        for topic in data.topics
        for path in (data.log_dir / f"{topic}-0").iterdir()
        if path.suffix in suffixes
    )
    return parse_dump(dump_log(files, "--deep-iteration"))


def logs_of(dump: Dump, topic: str) -> list[str]:
    return [file.path for file in dump.files if f"/{topic}-0/" in file.path and ".log" in file.path]


def test_apache_dumps_it_without_complaint(data: KafkaDataDir, dump: Dump) -> None:
    # What compaction takes away leaves gaps, which the dumper mentions and which are no fault.
    gaps = [text for text in dump.complaints if text.startswith("Non-consecutive offsets")]
    assert all("/compacted" in text for text in gaps)
    assert [text for text in dump.complaints if text not in gaps] == []


def test_the_records_served_are_those_on_disk(data: KafkaDataDir, dump: Dump) -> None:
    for topic, served in data.topics.items():
        on_disk = [
            (record.offset, record.timestamp, record.value_size_bytes)
            for path in logs_of(dump, topic)
            for batch in dump.file(path).batches
            if not batch.is_control
            for record in batch.records
            if record.offset >= served.log_start_offset
        ]
        assert on_disk == [
            (one.offset, one.timestamp, -1 if one.message.value is None else len(one.message.value))
            for one in served.records
        ], topic


def test_what_was_sent_is_served(data: KafkaDataDir) -> None:
    for topic, served in data.topics.items():
        messages = [one.message for one in served.records]
        sent = data.produced[topic]
        if topic in COMPACTED_TOPICS:
            assert 0 < len(messages) < len(sent)
            assert set(messages) <= set(sent)
        elif topic == "records-deleted":
            assert messages == sent[97:]
            assert served.log_start_offset == 97
        else:
            assert messages == sent, topic


def test_each_codec_is_there(data: KafkaDataDir, dump: Dump) -> None:
    for codec in CODECS:
        paths = logs_of(dump, f"codec-{codec}")
        assert len(paths) > 1
        codecs = {batch.compression for path in paths for batch in dump.file(path).batches}
        assert codecs == {codec}
    [recompressed] = logs_of(dump, "recompressed")
    assert {batch.compression for batch in dump.file(recompressed).batches} == {"zstd"}
    binary = logs_of(dump, "binary")
    assert {batch.compression for path in binary for batch in dump.file(path).batches} == {*CODECS}


def test_transactions_ended_both_ways_and_one_did_not(data: KafkaDataDir, dump: Dump) -> None:
    for topic in ("transactional", "java-transactions"):
        markers = {
            record.marker for path in logs_of(dump, topic) for record in dump.file(path).records
        }
        assert markers >= {None, "COMMIT"}
        assert ("ABORT" in markers) == (topic == "transactional")
    transactional = data.topics["transactional"]
    assert 0 < len(transactional.committed) < len(transactional.records)
    aborted = [
        entry
        for file in dump.files
        if "/transactional-0/" in file.path
        for entry in file.aborted_transactions
    ]
    assert len(aborted) == (12 if data.is_clean else 24)
    unfinished = data.topics["open-transaction"]
    assert (unfinished.last_stable_offset, unfinished.end_offset) == (0, 6)
    assert unfinished.committed == []
    [snapshot] = [
        file for file in dump.files if "/open-transaction-0/" in file.path and file.producers
    ]
    assert snapshot.producers[0].current_transaction_first_offset == 0


def test_compaction_left_all_it_can_leave(data: KafkaDataDir, dump: Dump) -> None:
    sent = data.produced["compacted"]
    latest = {message.key: message for message in sent}
    kept = {one.message.key: one.message for one in data.topics["compacted"].records}
    # Nothing that is the last word on its key went, and no tombstone is due yet.
    assert kept == latest
    for topic in COMPACTED_TOPICS:
        batches = [batch for path in logs_of(dump, topic) for batch in dump.file(path).batches]
        assert any(batch.count == 0 for batch in batches)
        assert any(0 < batch.count <= batch.last_offset - batch.base_offset for batch in batches)
        assert any(batch.delete_horizon_ms is not None for batch in batches)


def test_how_the_node_ended_shows(data: KafkaDataDir) -> None:
    assert (data.log_dir / ".kafka_cleanshutdown").exists() == data.is_clean
    partition = data.log_dir / "codec-none-0"
    active_index = max(partition.glob("*.index"))
    preallocated = active_index.stat().st_size == 10 * 1024 * 1024
    assert preallocated != data.is_clean
    epochs = (partition / "leader-epoch-checkpoint").read_text().splitlines()[2:]
    assert len(epochs) == (1 if data.is_clean else 2)
