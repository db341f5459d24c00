"""Apache Kafka's Java clients as loads: ProducerPerformance, ConsumerPerformance, and a first poll.

The tools run one after the other in one process, see `JavaClients.java`, which Java compiles when
it starts; that needs a JDK.
"""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

from bench.broker.client_run import ClientRun
from bench.broker.servers import Server
from headwater.java.processes import kill_process, start_process
from headwater.testing.apache_kafka import ToolFailedError, resolve
from headwater.testing.apache_kafka.tools import MEASURING_FLAGS

_PROGRAM = Path(__file__).with_name("JavaClients.java")
_SENT = re.compile(r"^(\d+) records sent, ([\d.]+) records/sec", re.M)
_TIMEOUT_S = 300.0


class JavaClients:
    """The process that the tools run in; it starts with the first run and ends with `close`."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            kill_process(process)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    def produce(
        self,
        server: Server,
        topic: str,
        *,
        record_size_bytes: int,
        record_count: int,
        properties: Mapping[str, str],
    ) -> ClientRun:
        """Run ProducerPerformance; the client has its defaults but for `properties`."""
        text = self._run(
            "produce",
            *("--topic", topic, "--throughput", "-1"),
            *("--num-records", str(record_count), "--record-size", str(record_size_bytes)),
            *("--bootstrap-server", server.bootstrap),
            *(("--command-property",) if properties else ()),
            *(f"{name}={value}" for name, value in properties.items()),
        )
        return parse_producer_report(text, record_size_bytes)

    def consume(self, server: Server, topic: str, record_count: int) -> ClientRun:
        """Run ConsumerPerformance; its time is that of fetching, without joining the group."""
        text = self._run(
            "consume",
            *("--bootstrap-server", server.bootstrap, "--topic", topic),
            *("--num-records", str(record_count), "--hide-header", "--timeout", "30000"),
        )
        return parse_consumer_report(text)

    def first_record_ms(self, server: Server, topic: str, group_id: str) -> float:
        """From the first poll of a new group's first consumer to its first record."""
        return float(self._run("first-record", server.bootstrap, topic, group_id).split()[-1])

    def _run(self, *words: str) -> str:
        """What a tool prints."""
        process = self._process
        if process is None or process.poll() is not None:
            command = resolve().command(str(_PROGRAM), jvm_flags=MEASURING_FLAGS)
            process = self._process = start_process(
                command, stdin=subprocess.PIPE, stderr=subprocess.STDOUT
            )
        guard = threading.Timer(_TIMEOUT_S, process.kill)
        guard.start()
        try:
            return _converse(process, "\t".join(words))
        finally:
            guard.cancel()


def _converse(process: subprocess.Popen[bytes], line: str) -> str:
    if process.stdin is None or process.stdout is None:
        raise ToolFailedError("The process of Kafka's Java clients has no pipes.")
    process.stdin.write(f"{line}\n".encode())
    process.stdin.flush()
    printed: list[str] = []
    for answer in process.stdout:
        text = answer.decode(errors="replace").rstrip("\n")
        if text == "finished":
            return "\n".join(printed)
        if text.startswith("failed "):
            raise ToolFailedError("\n".join([*printed[-20:], text]))
        printed.append(text)
    raise ToolFailedError("\n".join(["Kafka's Java clients ended:", *printed[-20:]]))


def parse_producer_report(text: str, record_size_bytes: int) -> ClientRun:
    """The last line of what ProducerPerformance prints is about all of it."""
    found = _SENT.findall(text)
    if not found:
        raise ToolFailedError(f"ProducerPerformance reports nothing:\n{text}")
    count, rate = int(found[-1][0]), float(found[-1][1])
    return ClientRun(count, count * record_size_bytes, count / rate)


def parse_consumer_report(text: str) -> ClientRun:
    """The line of figures that ConsumerPerformance prints."""
    cells = text.strip().splitlines()[-1].split(", ")
    if len(cells) != 10:
        raise ToolFailedError(f"ConsumerPerformance reports nothing:\n{text}")
    megabytes, count, fetch_ms = float(cells[2]), int(cells[4]), float(cells[7])
    return ClientRun(count, round(megabytes * 1024 * 1024), fetch_ms / 1000)
