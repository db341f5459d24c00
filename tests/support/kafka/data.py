"""A data directory that a real Apache Kafka wrote, with something of everything in it.

`make_kafka_data_dir` runs a node, writes topics, asks the node for every record that it serves, and
stops it. What it returns is what a reader of the files must find. `crash_after_more` goes on from a
copy of that, writes more and kills the node, so that its directory needs recovery: no
clean-shutdown marker, an old recovery point, indexes at their preallocated size, transactions that
nobody ended, a second leader epoch.

The topics, all of one partition and most of several small segments, are those in `TOPICS`. Kafka's
console producer writes the `codec-` ones and its performance tool `java-transactions`, so these
hold what the Java client makes; librdkafka writes the others, through confluent-kafka. The
compacted ones were compacted up to their active segment.
"""

import fcntl
import os
import pickle
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from headwater.testing.apache_kafka import KafkaNode
from tests.support.kafka.node import require_confluent_kafka, small_node
from tests.support.kafka.writer import CODECS, TIMEOUT_S, KafkaWriter, Message, TopicData

SMALL_SEGMENTS = {"internal.segment.bytes": "8192", "index.interval.bytes": "512"}
COMPACT = SMALL_SEGMENTS | {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
TOPICS: dict[str, dict[str, str]] = {
    **{f"codec-{codec}": SMALL_SEGMENTS for codec in CODECS},
    "codec-none": SMALL_SEGMENTS | {"segment.index.bytes": "10485760"},
    "java-transactions": SMALL_SEGMENTS,
    "binary": {"internal.segment.bytes": "262144"},
    "idempotent": SMALL_SEGMENTS,
    "transactional": SMALL_SEGMENTS,
    "open-transaction": {},
    "records-deleted": SMALL_SEGMENTS,
    "log-append-time": {"message.timestamp.type": "LogAppendTime"},
    "recompressed": {"compression.type": "zstd"},
    "rolled-by-time": {"segment.ms": "60000"},
    "compacted": COMPACT,
    "compacted-transactions": COMPACT,
    "empty": {},
}
COMPACTED_TOPICS = [topic for topic in TOPICS if topic.startswith("compacted")]
NODE_PROPERTIES = {
    # A crash leaves the active segments' indexes at this size; the default would make a copy large.
    "log.index.size.max.bytes": "65536",
    # Many timestamps are old on purpose; retention must not act on them.
    "log.retention.ms": "-1",
    # Segments below the log start offset go, compaction happens, and both are written down, soon.
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "500",
    "log.flush.start.offset.checkpoint.interval.ms": "500",
    "log.cleaner.backoff.ms": "100",
}


@dataclass(frozen=True)
class KafkaDataDir:
    """A node's directory, and what is in it."""

    directory: Path
    log_dir: Path
    is_clean: bool
    # What was sent, in order. Compaction and deletion make `topics` hold less.
    produced: dict[str, list[Message]]
    topics: dict[str, TopicData]


def make_kafka_data_dir(directory: Path) -> KafkaDataDir:
    """Have Apache Kafka write a directory and stop cleanly."""
    require_confluent_kafka()
    with small_node(directory, NODE_PROPERTIES) as node:
        writer = KafkaWriter(node, TOPICS, seed=1)
        writer.create_topics(TOPICS)
        writer.send_from_console({f"codec-{codec}": codec for codec in CODECS})
        writer.send_java_transactions("java-transactions")
        writer.send_binary("binary")
        writer.send_idempotently("idempotent")
        writer.send_in_transactions("transactional")
        writer.leave_transaction_open("open-transaction", "left-open")
        writer.send("records-deleted", writer.messages(200))
        writer.delete_records("records-deleted", before_offset=97)
        writer.send("log-append-time", writer.messages(20))
        writer.send("recompressed", writer.messages(20), compression="gzip")
        writer.send("rolled-by-time", writer.messages(20), interval_ms=9_000)
        writer.send_updates("compacted")
        writer.send_in_transactions("compacted-transactions")
        # The active segment is never compacted: this makes another one active.
        writer.send_updates("compacted-transactions", key_prefix="filler")
        _wait_for(lambda: _segments(node, "records-deleted")[0] > 0)
        _wait_for(lambda: all(_is_compacted(node, topic) for topic in COMPACTED_TOPICS))
        topics = writer.read_everything()
    return KafkaDataDir(directory, node.log_dirs[0], True, writer.produced, topics)


def shared_kafka_data_dirs(factory: pytest.TempPathFactory) -> tuple[KafkaDataDir, KafkaDataDir]:
    """A directory that was stopped cleanly and one that was not, made once for a whole test run.

    All tests see the same files, also those in other processes of the run: copy them before use.
    """
    # A parallel run gives each of its processes a directory below the one of the run.
    parallel = "PYTEST_XDIST_WORKER" in os.environ
    root = factory.getbasetemp().parent if parallel else factory.getbasetemp()
    description = root / "kafka-data.pickle"
    with (root / "kafka-data.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not description.exists():
            clean = make_kafka_data_dir(factory.mktemp("kafka-data") / "clean")
            crashed = crash_after_more(clean, factory.mktemp("kafka-data") / "crashed")
            description.write_bytes(pickle.dumps((clean, crashed)))
        dirs: tuple[KafkaDataDir, KafkaDataDir] = pickle.loads(description.read_bytes())
        return dirs


def crash_after_more(data: KafkaDataDir, directory: Path) -> KafkaDataDir:
    """Copy a cleanly stopped directory, have Apache Kafka go on there, and kill it."""
    shutil.copytree(data.directory, directory)
    with small_node(directory, NODE_PROPERTIES) as node:
        writer = KafkaWriter(node, TOPICS, seed=2)
        writer.produced.update({topic: list(sent) for topic, sent in data.produced.items()})
        for codec in CODECS:
            writer.send(f"codec-{codec}", writer.messages(100), compression=codec)
        writer.send_idempotently("idempotent")
        writer.send_in_transactions("transactional")
        writer.leave_transaction_open("transactional", "left-open-at-crash")
        writer.send_updates("compacted")
        _wait_for(lambda: all(_is_compacted(node, topic) for topic in COMPACTED_TOPICS))
        topics = writer.read_everything()
        node.kill()
    return KafkaDataDir(directory, node.log_dirs[0], False, writer.produced, topics)


def _is_compacted(node: KafkaNode, topic: str) -> bool:
    """Whether the cleaner's checkpoint of `topic` has reached the active segment."""
    lines = (node.log_dirs[0] / "cleaner-offset-checkpoint").read_text().splitlines()
    return f"{topic} 0 {_segments(node, topic)[-1]}" in lines


def _segments(node: KafkaNode, topic: str) -> list[int]:
    """The base offsets of the segments of `topic`, in order."""
    return sorted(int(path.stem) for path in (node.log_dirs[0] / f"{topic}-0").glob("*.log"))


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, "the node took too long"
        time.sleep(0.05)
