import base64
import itertools
import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from headwater.client.partitioner import partition_for_key
from tests.support.brokers.clusters import Cluster
from tests.support.command import Finished, run_command
from tests.support.waiting import eventually

Command = Callable[..., Finished]


@pytest.fixture
def produce(cluster: Cluster) -> Command:
    """`headwater produce` on the cluster; the input comes first."""

    def run(input: bytes, *arguments: object) -> Finished:
        return run_command("produce", *arguments, "-b", cluster.bootstrap, input=input)

    return run


@pytest.fixture
def consume(cluster: Cluster) -> Command:
    """`headwater consume` on the cluster, from the beginning unless told otherwise."""

    def run(*arguments: object) -> Finished:
        places = {"--offset", "--from-datetime", "--from-beginning"}
        start = () if places & set(map(str, arguments)) else ("--from-beginning",)
        return run_command("consume", *arguments, *start, "-b", cluster.bootstrap)

    return run


@pytest.fixture
def topic(cluster: Cluster) -> str:
    return new_topic(cluster)


def new_topic(cluster: Cluster, partitions: int = 1, stem: str = "topic") -> str:
    name = cluster.new_name(stem)
    where = ("-b", cluster.bootstrap)
    assert run_command("topics", "create", name, "-p", partitions, *where).exit_code == 0
    eventually(lambda: run_command("get-offsets", name, *where).exit_code == 0)
    return name


def test_lines_become_records(topic: str, produce: Command, consume: Command) -> None:
    text = "one\n\nthree with\ttab\nvierter, größer\r\nfünf ohne Ende".encode()
    written = produce(text, topic)
    assert (written.exit_code, written.stdout, written.stderr) == (0, "", "")
    read = consume(topic, "--max-messages", 5)
    assert read.exit_code == 0
    assert read.output == text.replace(b"\r", b"") + b"\n"
    assert read.stderr == "Processed a total of 5 messages\n"


def test_any_bytes_but_line_ends(topic: str, produce: Command, consume: Command) -> None:
    data = bytes(byte for byte in range(256) if byte not in b"\r\n")
    produce(data, "--topic", topic)
    assert consume("--topic", topic, "-n", 1).output == data + b"\n"


def test_keys_headers_and_nulls(cluster: Cluster, produce: Command, consume: Command) -> None:
    topic = new_topic(cluster, partitions=3)
    lines = b"a:1,b:2\tkey\tvalue\n-\tother\t-\n"
    properties = ("parse.key=true", "parse.headers=true", "null.marker=-")
    written = produce(
        lines, topic, *(f"--property={name}" for name in properties), "--header", "source=shop"
    )
    assert (written.exit_code, written.stderr) == (0, "")
    read = [json.loads(line) for line in consume(topic, "--json", "-n", 2).lines]
    by_key = {record["key"]: record for record in read}
    assert by_key.keys() == {"key", "other"}
    assert by_key["key"]["value"] == "value"
    assert by_key["key"]["headers"] == [
        {"key": "source", "value": "shop"},
        {"key": "a", "value": "1"},
        {"key": "b", "value": "2"},
    ]
    assert by_key["other"]["value"] is None
    for key, record in by_key.items():
        assert record["partition"] == partition_for_key(key.encode(), 3)
        assert (record["topic"], record["offset"]) == (topic, record["offset"])
        assert record["timestamp_type"] == "create_time"
    shown = consume(
        *(topic, "-n", 2, "--property", "print.key=true", "--property", "print.headers=true"),
        *("--property", "key.separator=|", "--property", "null.literal=NOTHING"),
    )
    assert sorted(shown.lines) == [
        "source:shop,a:1,b:2|key|value",
        "source:shop|other|NOTHING",
    ]


def test_what_is_no_text_is_base64(topic: str, produce: Command, consume: Command) -> None:
    produce(b"\xff\tv\n", topic, "--property", "parse.key=true")
    [record] = map(json.loads, consume(topic, "--json", "-n", 1).lines)
    assert base64.b64decode(record["key_base64"]) == b"\xff"
    assert record["value"] == "v"


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("acks", ["all", "1"])
def test_codecs_and_acks(
    topic: str, produce: Command, consume: Command, codec: str, acks: str
) -> None:
    lines = b"".join(b"line %d\n" % number for number in range(500))
    written = produce(lines, topic, "--compression-codec", codec, "--acks", acks)
    assert (written.exit_code, written.stderr) == (0, "")
    assert consume(topic, "-n", 500).output == lines


def test_a_line_may_be_as_long_as_the_topic_allows(
    cluster: Cluster, produce: Command, consume: Command
) -> None:
    topic = cluster.new_name("long")
    where = ("-b", cluster.bootstrap)
    run_command("topics", "create", topic, "--config", "max.message.bytes=3000000", *where)
    eventually(lambda: run_command("get-offsets", topic, *where).exit_code == 0)
    line = b"x" * 2_000_000
    assert produce(line, topic).exit_code == 0
    assert consume(topic, "-n", 1).output == line + b"\n"
    refused = produce(b"x" * 4_000_000, topic)
    assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1)
    assert "(1 record was not written)" in refused.stderr


@pytest.mark.parametrize("acks", ["all", "1", "0"])
def test_less_time_than_a_request_or_a_batch_may_take(
    topic: str, produce: Command, consume: Command, acks: str
) -> None:
    patience = ("--delivery-timeout-ms", 5000, "--timeout", 60_000)
    written = produce(b"one\ntwo\n", topic, "--acks", acks, *patience)
    assert (written.exit_code, written.stderr) == (0, "")
    assert consume(topic, "-n", 2).lines == ["one", "two"]


def test_partitions_and_offsets(cluster: Cluster, produce: Command, consume: Command) -> None:
    topic = new_topic(cluster, partitions=2)
    for partition in range(2):
        written = produce(
            b"".join(b"%d-%d\n" % (partition, n) for n in range(5)),
            *(topic, "--partition", partition),
        )
        assert written.exit_code == 0
    assert consume(topic, "--partition", 1, "--offset", 3, "-n", 2).lines == ["1-3", "1-4"]
    assert consume(topic, "--partition", 0, "--offset", "earliest", "-n", 1).lines == ["0-0"]
    everything = consume(topic, "-n", 10, "--property", "print.partition=true")
    assert (everything.exit_code, len(everything.lines)) == (0, 10)
    assert everything.lines[0].startswith("Partition:")
    latest = consume(topic, "--partition", 1, "--offset", "latest", "--timeout-ms", 100)
    assert (latest.exit_code, latest.stdout) == (0, "")
    assert latest.stderr == "Processed a total of 0 messages\n"


def test_several_topics_by_a_pattern(cluster: Cluster, produce: Command, consume: Command) -> None:
    stem = cluster.new_name("included")
    for number in range(2):
        topic = new_topic(cluster, stem=f"{stem}.{number}")
        produce(b"%d\n" % number, topic)
    assert sorted(consume("--include", f"{stem}.*", "-n", 2).lines) == ["0", "1"]
    nothing = consume("--include", f"{stem}-none")
    assert (nothing.exit_code, nothing.stderr) == (
        1,
        f"headwater: There is no topic that matches '{stem}-none'.\n",
    )


def test_from_a_moment_on(topic: str, produce: Command, consume: Command) -> None:
    produce(b"early\n", topic)
    [early] = map(json.loads, consume(topic, "--json", "-n", 1).lines)

    counts = itertools.count(2)

    def produce_later() -> bool:
        """Another record, which is not of the same millisecond sooner or later."""
        produce(b"late\n", topic)
        last = consume(topic, "--json", "-n", next(counts)).lines[-1]
        return bool(json.loads(last)["timestamp"] > early["timestamp"] + 1)

    eventually(produce_later)
    after = datetime.fromtimestamp((early["timestamp"] + 1) / 1000, UTC).isoformat()
    assert consume(topic, "--from-datetime", after, "-n", 1).lines == ["late"]
    future = consume(topic, "--from-datetime", "2999-01-01", "--timeout-ms", 100)
    assert (future.exit_code, future.stdout) == (0, "")


def test_a_line_at_fault_ends_the_input_and_what_came_before_counts(
    cluster: Cluster, topic: str, produce: Command, consume: Command
) -> None:
    failed = produce(b"a\t1\nb\t2\nno tab\nc\t3\n", topic, "--property", "parse.key=true")
    assert (failed.exit_code, failed.stderr) == (
        1,
        "headwater: There is no key separator in line 3: 'no tab'.\n",
    )
    assert consume(topic, "-n", 2).lines == ["1", "2"]
    assert run_command("get-offsets", topic, "-b", cluster.bootstrap).lines == [f"{topic}:0:2"]


def test_what_the_broker_refuses_is_told(cluster: Cluster, produce: Command) -> None:
    name = cluster.new_name()
    where = ("-b", cluster.bootstrap)
    run_command("topics", "create", name, "--config", "cleanup.policy=compact", *where)
    eventually(lambda: run_command("get-offsets", name, *where).exit_code == 0)
    failed = produce(b"no key\n", name)
    assert (failed.exit_code, failed.stdout) == (1, "")
    assert "key" in failed.stderr
    assert failed.stderr.endswith("(1 record was not written)\n")


def test_a_topic_comes_into_being(cluster: Cluster, produce: Command, consume: Command) -> None:
    topic = cluster.new_name("automatic")
    assert produce(b"first\n", topic).exit_code == 0
    assert consume(topic, "-n", 1).lines == ["first"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("produce", "bad name"), "is not valid"),
        (("consume", "absent"), "There is no topic 'absent'."),
        (("consume", "{topic}", "--partition", "7"), "has no partition 7"),
        (("produce", "{topic}", "--partition", "7"), "has no partition 7"),
    ],
)
def test_a_failure_is_one_sentence(
    cluster: Cluster, topic: str, arguments: tuple[str, ...], sentence: str
) -> None:
    command = [argument.format(topic=topic) for argument in arguments]
    failed = run_command(*command, "-b", cluster.bootstrap, input=b"x\n")
    assert (failed.exit_code, failed.stdout) == (1, "")
    assert failed.stderr.startswith("headwater: ")
    assert failed.stderr.count("\n") == 1
    assert sentence in failed.stderr


@pytest.mark.parametrize("command", ["produce", "consume"])
def test_a_cluster_that_is_not_there(command: str) -> None:
    failed = run_command(command, "orders", "-b", "127.0.0.1:1")
    assert (failed.exit_code, failed.stderr) == (
        1,
        "headwater: Cannot connect to 127.0.0.1:1: Connection refused.\n",
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("produce",),
        ("produce", "x", "--acks", "2"),
        ("produce", "x", "--compression-codec", "zip"),
        ("produce", "x", "--property", "nonsense=1"),
        ("produce", "x", "--header", "novalue"),
        ("consume",),
        ("consume", "x", "--include", "y"),
        ("consume", "x", "--offset", "5"),
        ("consume", "x", "--partition", "0", "--offset", "five"),
        ("consume", "x", "--from-beginning", "--from-datetime", "2026-01-01"),
        ("consume", "x", "--isolation-level", "serializable"),
        ("consume", "x", "--json", "--property", "print.key=true"),
        ("consume", "x", "--group", ""),
        ("consume", "x", "--group", "g", "--partition", "0"),
        ("consume", "x", "--group", "g", "--from-datetime", "2026-01-01"),
        ("consume", "x", "--group", "g", "--consumer-property", "group.id=h"),
        ("consume", "x", "--group", "g", "--consumer-property", "novalue"),
        ("consume", "x", "--no-commit"),
    ],
)
def test_a_senseless_command_line_exits_with_2(arguments: tuple[str, ...]) -> None:
    finished = run_command(*arguments)
    assert (finished.exit_code, finished.stdout) == (2, "")


@pytest.mark.kafka
@pytest.mark.full
def test_kafkas_own_console_tools_agree(
    cluster: Cluster, produce: Command, consume: Command
) -> None:
    topic = new_topic(cluster)
    lines = "a:1,b:2\tk1\tv1\nc:3\tk2\tv2\n"
    produce(lines.encode(), topic, "--property=parse.key=true", "--property=parse.headers=true")
    cluster.run_tool(
        *("console-producer", "--topic", topic),
        *("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true"),
        input=lines,
    )
    properties = [
        argument
        for name in ("timestamp", "partition", "offset", "headers", "key")
        for argument in ("--formatter-property", f"print.{name}=true")
    ]
    options = ("--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", "4")
    theirs = cluster.run_tool("console-consumer", *options, *properties)
    assert consume(*options, *properties).stdout == theirs
    assert theirs.count("a:1,b:2\tk1\tv1") == 2
