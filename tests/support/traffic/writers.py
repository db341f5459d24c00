"""Writers that keep a ledger: of the clients in Python, and Apache's VerifiableProducer.

    with TrafficWriter(HeadwaterSending(bootstrap), topic, 3) as writer:
        wait_until(lambda: len(writer.ledger.acknowledged) > 100, "it writes")

Each writes a few hundred records a second from the moment it is entered until `finish`, which
returns when it knows of every record how it ended.
"""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from headwater.java.processes import forget_process, kill_process
from headwater.testing.apache_kafka import start_tool
from tests.support.kafka.node import require_apache_kafka
from tests.support.traffic.clients import DELIVERY_MS, FLUSH_S, REQUEST_MS, SendingClient
from tests.support.traffic.ledger import Ledger

PAUSE_S = 0.01
BURST_COUNT = 2
#: While so many are not answered, nothing more is sent: the cluster is away.
OPEN_COUNT_MAX = 500
VERIFIABLE_RECORDS_PER_S = 300


class Writer(Protocol):
    ledger: Ledger

    def check(self) -> None:
        """Raise what ended it, if anything did."""

    def finish(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


class TrafficWriter:
    """One of the clients in Python, on a thread."""

    def __init__(self, client: SendingClient, topic: str, partition_count: int) -> None:
        self.ledger = Ledger()
        self._client = client
        self._topic = topic
        self._partition_count = partition_count
        self._error: BaseException | None = None
        self._is_ending = threading.Event()
        self._thread = threading.Thread(target=self._write, name=f"writer-{client.name}")

    def check(self) -> None:
        if self._error is not None:
            raise self._error

    def finish(self) -> None:
        self._is_ending.set()
        self._thread.join(FLUSH_S)
        assert not self._thread.is_alive(), "a send still blocks"
        self.check()
        self._client.flush()
        assert self.ledger.open_count == 0, f"{self.ledger.open_count} records are open"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_ending.set()
        self._thread.join(FLUSH_S)
        self._client.close()

    def _write(self) -> None:
        ledger = self.ledger
        try:
            while not self._is_ending.is_set():
                if ledger.open_count < OPEN_COUNT_MAX:
                    for _ in range(BURST_COUNT * self._partition_count):
                        self._send(ledger.sent_count)
                time.sleep(PAUSE_S)
        except BaseException as error:
            self._error = error

    def _send(self, number: int) -> None:
        partition = number % self._partition_count
        ledger = self.ledger

        def on_done(error: object | None) -> None:
            if error is None:
                ledger.acknowledged.append((partition, number))
            else:
                ledger.refused.append((number, str(error)))

        ledger.sent_count = number + 1
        self._client.send(self._topic, partition, b"%d" % number, on_done)


class VerifiableWriter:
    """Apache's VerifiableProducer, told to be idempotent and to try again."""

    def __init__(self, bootstrap: str, topic: str, directory: Path) -> None:
        self.ledger = Ledger()
        self._bootstrap = bootstrap
        self._topic = topic
        self._errors_file = directory / "verifiable-producer.txt"
        self._properties = directory / "verifiable-producer.properties"
        self._is_over = False
        self._listener = threading.Thread(target=self._listen, daemon=True)

    def check(self) -> None:
        is_well = self._is_over or self._process.poll() is None
        assert is_well, self._errors_file.read_text()[-4000:]

    def finish(self) -> None:
        self.check()
        # It sends what it has, and says when it has ended.
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(FLUSH_S)
        forget_process(self._process)
        self._listener.join()
        assert self._is_over, self._errors_file.read_text()[-4000:]

    def __enter__(self) -> Self:
        self._properties.write_text(
            "enable.idempotence=true\nretries=2147483647\n"
            f"delivery.timeout.ms={DELIVERY_MS}\nrequest.timeout.ms={REQUEST_MS}\n"
            "reconnect.backoff.max.ms=300\nretry.backoff.max.ms=300\n"
        )
        with self._errors_file.open("wb") as errors:
            self._process = start_tool(
                "verifiable-producer",
                [
                    *("--bootstrap-server", self._bootstrap, "--topic", self._topic),
                    *("--throughput", str(VERIFIABLE_RECORDS_PER_S), "--acks", "-1"),
                    *("--command-config", str(self._properties)),
                ],
                stdout=subprocess.PIPE,
                stderr=errors,
                kafka=require_apache_kafka(),
            )
        self._listener.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        kill_process(self._process)
        self._listener.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(b"{"):
                self._note(json.loads(line))

    def _note(self, event: dict[str, Any]) -> None:
        ledger = self.ledger
        match event["name"]:
            case "producer_send_success":
                number = int(event["value"])
                ledger.acknowledged.append((event["partition"], number))
            case "producer_send_error":
                number = int(event["value"])
                ledger.refused.append((number, event["message"]))
            case "shutdown_complete":
                self._is_over = True
                return
            case _:
                return
        # It sends its numbers in order, and says nothing of those that are under way.
        ledger.sent_count = max(ledger.sent_count, number + 1)
