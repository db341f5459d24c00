"""Apache Kafka's log directories in our hands, and back in Kafka's."""

import random
import shutil
import time
from pathlib import Path

import pytest

from headwater.base.ids import TopicPartition
from headwater.sim.campaigns.broker_logs import append
from headwater.storage.directories.broker_metadata import read_broker_metadata
from headwater.storage.directories.log_directories import LogDirectories
from headwater.storage.directories.log_environment import LogEnvironment
from headwater.storage.disk.files import DiskFiles
from headwater.storage.disk.handles import HandleCache
from headwater.storage.log_config import LogConfig
from tests.support.kafka.data import (
    NODE_PROPERTIES,
    TOPICS,
    KafkaDataDir,
    shared_kafka_data_dirs,
)
from tests.support.kafka.node import require_apache_kafka, require_confluent_kafka, small_node
from tests.support.kafka.writer import TIMEOUT_S, KafkaWriter, TopicData

pytestmark = pytest.mark.kafka

FILES = DiskFiles()


@pytest.fixture(scope="module")
def kafka_dirs(tmp_path_factory: pytest.TempPathFactory) -> tuple[KafkaDataDir, KafkaDataDir]:
    require_apache_kafka()
    return shared_kafka_data_dirs(tmp_path_factory)


def copied_log_dir(data: KafkaDataDir, target: Path) -> Path:
    shutil.copytree(data.directory, target)
    return target / data.log_dir.relative_to(data.directory)


def open_log_dir(log_dir: Path, now_ms: int) -> LogDirectories:
    metadata = read_broker_metadata(FILES, str(log_dir))
    assert metadata is not None and metadata.cluster_id is not None and metadata.node_id is not None
    environment = LogEnvironment(
        FILES, HandleCache(FILES, 50), random.Random(0), lambda _topic: LogConfig()
    )
    directories = LogDirectories.open(
        [str(log_dir)], environment, cluster_id=metadata.cluster_id, node_id=metadata.node_id
    )
    for progress in directories.load(now_ms):
        assert progress.done < progress.total
    return directories


def not_ours(log_dir: Path) -> dict[str, bytes]:
    paths = [log_dir / "meta.properties", *sorted((log_dir / "__cluster_metadata-0").iterdir())]
    return {path.name: path.read_bytes() for path in paths}


def read_everything_once_led(writer: KafkaWriter) -> dict[str, TopicData]:
    """A node that has just started answers requests before it leads all its partitions."""
    unready = require_confluent_kafka().KafkaException
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            return writer.read_everything()
        except unready:
            assert time.monotonic() < deadline, "the node took too long"
            time.sleep(0.2)


@pytest.mark.parametrize("state", ["stopped", "killed"])
def test_a_directory_of_kafkas_goes_through_our_hands(
    state: str, kafka_dirs: tuple[KafkaDataDir, KafkaDataDir], tmp_path: Path
) -> None:
    """Opened, recovered where need be, written to and closed here; then Kafka goes on with it."""
    data = kafka_dirs[0 if state == "stopped" else 1]
    log_dir = copied_log_dir(data, tmp_path / "node")
    before = not_ours(log_dir)
    newest = max(record.timestamp for record in data.topics["codec-none"].records)

    directories = open_log_dir(log_dir, newest)
    [directory] = directories.directories
    assert directory.was_clean == data.is_clean and not directory.unreadable
    assert {TopicPartition(topic, 0) for topic in TOPICS} <= directory.logs.keys()
    for topic, expected in data.topics.items():
        log = directory.logs[TopicPartition(topic, 0)]
        assert (log.log_start_offset, log.log_end_offset) == (
            expected.log_start_offset,
            expected.end_offset,
        ), topic
        if data.is_clean:
            assert log.high_watermark == expected.end_offset, topic
    log = directory.logs[TopicPartition("codec-none", 0)]
    epoch = log.leader_epochs.latest_epoch
    assert epoch is not None
    append(log, b"from here", now_ms=newest, leader_epoch=epoch)
    log.raise_high_watermark(log.log_end_offset)
    directories.shutdown(broker_epoch=1)
    assert not_ours(log_dir) == before

    with small_node(tmp_path / "node", NODE_PROPERTIES) as node:
        writer = KafkaWriter(node, TOPICS, seed=3)
        writer.produced.update(data.produced)
        found = read_everything_once_led(writer)
    for topic, expected in data.topics.items():
        count = len(expected.records)
        assert found[topic].records[:count] == expected.records, topic
        assert found[topic].log_start_offset == expected.log_start_offset, topic
    [last] = found["codec-none"].records[len(data.topics["codec-none"].records) :]
    assert (last.message.value, last.offset) == (
        b"from here",
        data.topics["codec-none"].end_offset,
    )
