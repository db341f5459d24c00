"""Apache Kafka's Java clients as loads: ProducerPerformance, and a consumer.

Consumers are run by ConsumerPerformance if both servers coordinate consumer groups, which it needs.
Until then a small program takes its place that assigns partitions, with the same client and the
same settings; Java compiles it when it starts, which needs a JDK.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from bench.broker.client_run import ClientRun
from bench.broker.servers import Server
from headwater.testing.apache_kafka import ToolFailed, resolve, run_tool
from headwater.testing.apache_kafka.processes import forget_process, kill_process, start_process
from headwater.testing.apache_kafka.tools import MEASURING_FLAGS
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.api_versions import ApiVersionsRequest

_ASSIGNED_CONSUMER = Path(__file__).with_name("AssignedConsumerPerformance.java")
_SENT = re.compile(r"^(\d+) records sent, ([\d.]+) records/sec", re.M)
_TIMEOUT_S = 300.0


def produce(
    server: Server,
    topic: str,
    *,
    record_size_bytes: int,
    record_count: int,
    properties: Mapping[str, str],
) -> ClientRun:
    """Run ProducerPerformance; the client has its defaults but for `properties`."""
    result = run_tool(
        "producer-perf-test",
        [
            *("--topic", topic, "--throughput", "-1"),
            *("--num-records", str(record_count), "--record-size", str(record_size_bytes)),
            *("--producer-props", f"bootstrap.servers={server.bootstrap}"),
            *(f"{name}={value}" for name, value in properties.items()),
        ],
        timeout_s=_TIMEOUT_S,
    )
    return parse_producer_report(result.stdout, record_size_bytes)


def parse_producer_report(text: str, record_size_bytes: int) -> ClientRun:
    """The last line of what ProducerPerformance prints is about all of it."""
    found = _SENT.findall(text)
    if not found:
        raise ToolFailed(f"ProducerPerformance reports nothing:\n{text}")
    count, rate = int(found[-1][0]), float(found[-1][1])
    return ClientRun(count, count * record_size_bytes, count / rate)


def coordinates_groups(server: Server) -> bool:
    """Whether the server serves what ConsumerPerformance needs."""
    with server.connect() as client:
        keys = {api.api_key for api in client.ask(ApiVersionsRequest()).api_keys}
    return {ApiKey.FIND_COORDINATOR, ApiKey.JOIN_GROUP, ApiKey.OFFSET_FETCH} <= keys


def consume_as_group(server: Server, topic: str, record_count: int) -> ClientRun:
    """Run ConsumerPerformance; its time is that of fetching, without joining the group."""
    result = run_tool(
        "consumer-perf-test",
        [
            *("--bootstrap-server", server.bootstrap, "--topic", topic),
            *("--messages", str(record_count), "--hide-header", "--timeout", "30000"),
        ],
        timeout_s=_TIMEOUT_S,
    )
    return parse_consumer_report(result.stdout)


def parse_consumer_report(text: str) -> ClientRun:
    """The line of figures that ConsumerPerformance prints."""
    cells = text.strip().splitlines()[-1].split(", ")
    if len(cells) != 10:
        raise ToolFailed(f"ConsumerPerformance reports nothing:\n{text}")
    megabytes, count, fetch_ms = float(cells[2]), int(cells[4]), float(cells[7])
    return ClientRun(count, round(megabytes * 1024 * 1024), fetch_ms / 1000)


def consume_assigned(
    server: Server, topic: str, partition_count: int, record_count: int
) -> ClientRun:
    """Consume all partitions without a group."""
    arguments = [server.bootstrap, topic, str(partition_count), str(record_count)]
    command = resolve().command(str(_ASSIGNED_CONSUMER), *arguments, jvm_flags=MEASURING_FLAGS)
    process = start_process(command)
    try:
        stdout, stderr = process.communicate(timeout=_TIMEOUT_S)
    except BaseException:
        kill_process(process)
        raise
    forget_process(process)
    if process.returncode != 0:
        raise ToolFailed(f"The consumer in Java failed:\n{stderr.decode(errors='replace')}")
    count, size_bytes, milliseconds = stdout.split()[-3:]
    return ClientRun(int(count), int(size_bytes), float(milliseconds) / 1000)
