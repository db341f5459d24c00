"""Apache Kafka's own tools and clients, in Java, for tests of groups and transactions.

`VerifiableMember` is Apache's VerifiableConsumer: a member of a group in a process of its own that
tells in lines of JSON what happens to it.
"""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from headwater.java.processes import forget_process, kill_process, start_process
from headwater.testing.apache_kafka import run_tool, start_tool
from tests.support.kafka.node import require_apache_kafka
from tests.support.other_clients.contract import TIMEOUT_S
from tests.support.other_clients.groups.contract import Owned

COPIER_CLASS = "org.apache.kafka.tools.TransactionalMessageCopier"


class Printed(NamedTuple):
    output: str
    errors: str


class JavaTools:
    """Runs tools against one broker."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._kafka = require_apache_kafka()

    def run(self, name: str, *args: str) -> str:
        """What the tool prints; it must succeed."""
        address = ["--bootstrap-server", self.bootstrap]
        return run_tool(name, [*address, *args], kafka=self._kafka).stdout

    def table(self, name: str, *args: str) -> list[dict[str, str]]:
        """The rows of the one table that the tool prints, by the names of its columns."""
        return rows(self.run(name, *args))

    def fail(self, name: str, *args: str) -> str:
        """What the tool complains of, whatever its exit code says."""
        address = ["--bootstrap-server", self.bootstrap]
        done = run_tool(name, [*address, *args], check_exit=False, kafka=self._kafka)
        return done.stdout + done.stderr

    def copy(self, *args: str) -> Printed:
        """Run the transactional copier to its end, with a log that tells each request."""
        flags = ("-Xmx256m", *self._kafka.quick_start_flags, "-Dheadwater.log.level=DEBUG")
        arguments = ["--broker-list", self.bootstrap, *args]
        process = start_process(self._kafka.command(COPIER_CLASS, *arguments, jvm_flags=flags))
        try:
            output, errors = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            kill_process(process)
            output, errors = process.communicate()
            raise AssertionError(errors.decode()[-4000:]) from None
        forget_process(process)
        return Printed(output.decode(), errors.decode())


def rows(text: str) -> list[dict[str, str]]:
    """A table whose cells have no blanks, with its header in the first line."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    header, *body = lines
    return [dict(zip(header, line, strict=False)) for line in body if line != header]


class VerifiableMember:
    """See the module's text. Its class loading takes a second or so before it joins."""

    def __init__(
        self, bootstrap: str, group: str, topic: str, protocol: str, output: Path, *flags: str
    ) -> None:
        self.owned: Owned = frozenset()
        self.events: list[dict[str, Any]] = []
        self._errors_file = output
        args = ["--bootstrap-server", bootstrap, "--group-id", group, "--topic", topic]
        args += ["--group-protocol", protocol, "--reset-policy", "earliest", *flags]
        with output.open("wb") as errors:
            self._process = start_tool(
                "verifiable-consumer",
                args,
                stdout=subprocess.PIPE,
                stderr=errors,
                kafka=require_apache_kafka(),
            )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def check(self) -> None:
        assert self._process.poll() is None, self._errors_file.read_text()[-4000:]

    def consumed(self) -> int:
        return sum(each["count"] for each in self.told("records_consumed"))

    def told(self, name: str) -> list[dict[str, Any]]:
        return [each for each in self.events if each["name"] == name]

    def stop(self) -> None:
        """Let it leave in order."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(TIMEOUT_S)
        forget_process(self._process)
        self._listener.join()

    def wait(self) -> None:
        """Until it has ended by itself."""
        self._process.wait(TIMEOUT_S)
        forget_process(self._process)
        self._listener.join()

    def __enter__(self) -> Self:
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
            if not line.startswith(b"{"):
                continue
            event = json.loads(line)
            self.events.append(event)
            if event["name"] in ("partitions_assigned", "partitions_revoked"):
                named = {(each["topic"], each["partition"]) for each in event["partitions"]}
                is_more = event["name"] == "partitions_assigned"
                self.owned = self.owned | named if is_more else self.owned - named
