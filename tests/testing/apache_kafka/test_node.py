"""One node of the real Apache Kafka, its tools, and what it leaves on disk."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headwater.testing.apache_kafka import (
    KafkaNode,
    KafkaNodeError,
    ToolFailedError,
    dump_log,
    parse_dump,
    run_tool,
)
from tests.support.kafka.node import require_apache_kafka, small_node
from tests.support.tiers import full_tier

pytestmark = pytest.mark.kafka

# The directories for compatibility tests are written with all of them in any tier.
CODECS = ("none", "gzip", "snappy", "lz4", "zstd") if full_tier() else ("none", "zstd")
LINES = [f"line {i} of the text, näher betrachtet" for i in range(50)]
SEGMENT = "00000000000000000000"


def produce(node: KafkaNode, topic: str, codec: str, lines: list[str]) -> None:
    arguments = ("--topic", topic, "--compression-codec", codec)
    node.run_tool("console-producer", *arguments, input="\n".join(lines) + "\n")


def consume(node: KafkaNode, topics: str, count: int) -> list[str]:
    """The values of all topics that match, of which there are `count`, in no order."""
    limits = ("--max-messages", str(count), "--timeout-ms", "30000")
    consumed = node.run_tool("console-consumer", "--include", topics, "--from-beginning", *limits)
    return consumed.stdout.splitlines()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    """A node with a topic for each codec, all of them filled by the console producer."""
    with small_node(tmp_path_factory.mktemp("node"), log_dir_count=2) as node:
        with ThreadPoolExecutor(max_workers=3) as pool:
            list(pool.map(lambda codec: produce(node, f"codec-{codec}", codec, LINES), CODECS))
        yield node
        if node.is_running:
            node.stop()


def partition_dir(node: KafkaNode, topic: str) -> Path:
    [found] = [path for root in node.log_dirs for path in root.glob(f"{topic}-0")]
    return found


def test_a_topic_is_created_and_described(node: KafkaNode) -> None:
    node.run_tool("topics", "--create", "--topic", "made", "--config", "retention.ms=12345")
    described = node.run_tool("topics", "--describe", "--topic", "made").stdout
    assert "PartitionCount: 1" in described
    assert "retention.ms=12345" in described


def test_every_codec_is_read_back(node: KafkaNode) -> None:
    count = len(CODECS)
    assert sorted(consume(node, "codec-.*", 50 * count)) == sorted(LINES * count)


def test_data_survives_a_clean_stop_and_a_crash(node: KafkaNode) -> None:
    address, former_pid = node.bootstrap, node.pid
    node.stop()
    assert not node.is_running
    for root in node.log_dirs:
        names = {path.name for path in root.iterdir() if path.is_file()}
        assert {
            ".kafka_cleanshutdown",
            "cleaner-offset-checkpoint",
            "log-start-offset-checkpoint",
            "meta.properties",
            "recovery-point-offset-checkpoint",
            "replication-offset-checkpoint",
        } <= names

    for codec in CODECS:
        directory = partition_dir(node, f"codec-{codec}")
        assert {path.name for path in directory.iterdir()} == {
            f"{SEGMENT}.index",
            f"{SEGMENT}.log",
            f"{SEGMENT}.timeindex",
            "00000000000000000050.snapshot",
            "leader-epoch-checkpoint",
            "partition.metadata",
        }
    logs = {codec: partition_dir(node, f"codec-{codec}") / f"{SEGMENT}.log" for codec in CODECS}
    dump = parse_dump(dump_log(list(logs.values()), "--print-data-log"))
    assert dump.complaints == []
    for codec, log in logs.items():
        dumped = dump.file(log)
        assert {batch.compression for batch in dumped.batches} == {codec}
        assert sum(batch.size_bytes for batch in dumped.batches) == log.stat().st_size
        assert [record.payload for record in dumped.records] == LINES
        assert [record.offset for record in dumped.records] == list(range(50))

    node.start()
    assert node.bootstrap == address
    assert node.pid != former_pid
    produce(node, "codec-none", "none", ["one more"])
    node.kill()
    assert not node.is_running
    node.start()
    assert sorted(consume(node, "codec-none", 51)) == sorted([*LINES, "one more"])


def test_the_dumper_complains_about_broken_files(node: KafkaNode, tmp_path: Path) -> None:
    # Only reads files, so it does not matter whether the node runs.
    good = (partition_dir(node, "codec-zstd") / f"{SEGMENT}.log").read_bytes()
    variants = {
        "good": good,
        "torn": good + good[:-1],
        "flipped": good[:-1] + bytes([good[-1] ^ 1]),
        "index": good,
    }
    for name, content in variants.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{SEGMENT}.log").write_bytes(content)
    # An entry that names the first batch by an offset that is not its last one.
    (tmp_path / "index" / f"{SEGMENT}.index").write_bytes(bytes.fromhex("0000000300000000"))
    files = sorted(tmp_path.glob("*/*"))
    complaints = parse_dump(dump_log(files)).complaints
    assert len(complaints) == 3, complaints
    assert complaints[0] == f"Found {len(good) - 1} invalid bytes at the end of {SEGMENT}.log"
    assert complaints[1].startswith(f"Mismatches in :{tmp_path}/index/{SEGMENT}.index")
    assert complaints[2] == f"isvalid: false at position 0 of {tmp_path}/flipped/{SEGMENT}.log"


def test_a_dumper_that_fails_is_a_complaint_too(tmp_path: Path) -> None:
    require_apache_kafka()
    complaints = parse_dump(dump_log([tmp_path / f"{SEGMENT}.log"])).complaints
    assert "NoSuchFileException" in complaints[0]
    assert complaints[-1] == "dump-log ended with exit code 1"


def test_a_tool_that_fails_or_hangs_raises() -> None:
    kafka = require_apache_kafka()
    with pytest.raises(ToolFailedError, match="storage ended with exit code") as failed:
        run_tool("storage", ["no-such-command"], kafka=kafka)
    assert "no-such-command" in str(failed.value)
    nobody_there = ["--bootstrap-server", "127.0.0.1:1", "--list"]
    with pytest.raises(ToolFailedError, match=r"topics did not end within 1\.5 s"):
        run_tool("topics", nobody_there, timeout_s=1.5, kafka=kafka)


def test_a_node_that_cannot_start_says_why(tmp_path: Path) -> None:
    node = small_node(tmp_path)
    # Formatted for another node, so the server refuses it.
    node.log_dirs[0].mkdir()
    (node.log_dirs[0] / "meta.properties").write_text("version=1\nnode.id=2\ncluster.id=x\n")
    with pytest.raises(KafkaNodeError, match="ended while starting") as refused:
        node.start()
    assert "Stored node id 2 doesn't match" in str(refused.value)
    assert not node.is_running
    with pytest.raises(KafkaNodeError, match="not running"):
        node.stop()
