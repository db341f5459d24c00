"""kcat, with the librdkafka of its day, as the conformance tests use it.

It is a command, so every call is a process. It has no administration beyond listing, gives records
no time, and does not tell a producer any offset. What it reads comes as JSON, so keys and values
must be UTF-8.
"""

from __future__ import annotations

import itertools
import json
import re
import subprocess
from collections.abc import Sequence
from typing import Any

from tests.support.other_clients.contract import (
    DEFAULT_SENDING,
    FETCH_WAIT_MS,
    TIMEOUT_S,
    ClientError,
    Consumed,
    Headers,
    Message,
    Sending,
    Start,
)
from tests.support.requirements import require_tool

MESSAGE_END = "\x1e"
KEY_END = "\x1f"

#: Its words for errors that tests look for.
ERRORS = {
    "Broker: Message size too large": "MESSAGE_TOO_LARGE",
    "Broker: Offset out of range": "OFFSET_OUT_OF_RANGE",
    "Broker: Unknown topic or partition": "UNKNOWN_TOPIC_OR_PARTITION",
    "Broker: Invalid topic": "INVALID_TOPIC_EXCEPTION",
    "Broker: Broker failed to validate record": "INVALID_RECORD",
    "Local: Unknown topic": "-_UNKNOWN_TOPIC",
    "Local: Unknown partition": "-_UNKNOWN_PARTITION",
    "Local: Message timed out": "-_MSG_TIMED_OUT",
}


class KcatClient:
    """See `contract.Client`."""

    name = "kcat"
    sets_timestamps = False
    reports_offsets = False
    sends_null_headers = False

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._kcat = require_tool("kcat")

    def produce(
        self, topic: str, messages: Sequence[Message], sending: Sending = DEFAULT_SENDING
    ) -> list[int]:
        # -E: it would otherwise end as soon as it has no connection at all for a moment.
        flags = ["-P", "-E", "-t", topic, "-z", sending.compression]
        flags += ["-D", MESSAGE_END, "-K", KEY_END]
        flags += self._properties(
            {
                "topic.acks": sending.acks,
                "enable.idempotence": str(sending.is_idempotent).lower(),
                "message.max.bytes": sending.message_bytes_max,
                "topic.message.timeout.ms": int(sending.timeout_s * 1000),
            }
        )
        # A process has one partition, one set of headers, and one meaning for an empty message.
        for (partition, headers, is_null), group in itertools.groupby(
            messages, lambda each: (each.partition, each.headers, each.value is None)
        ):
            for_group = ["-p", str(partition), *(["-Z"] if is_null else [])]
            for name, value in headers:
                assert value is not None
                for_group += ["-H", f"{name}={value.decode()}"]
            lines = [self._line(message) for message in group]
            self._run([*flags, *for_group], b"".join(lines))
        return []

    def consume(self, topic: str, start: Start, partition: int = 0) -> list[Consumed]:
        names = {"earliest": "beginning", "latest": "end"}
        return self._consume(topic, names.get(str(start), str(start)), partition)

    def consume_since(self, topic: str, timestamp_ms: int, partition: int = 0) -> list[Consumed]:
        return self._consume(topic, f"s@{timestamp_ms}", partition)

    def offset_for_time(self, topic: str, timestamp_ms: int, partition: int = 0) -> int | None:
        found = self._query(topic, partition, timestamp_ms)
        return None if found < 0 else found

    def end_offsets(self, topic: str, partition: int = 0) -> tuple[int, int]:
        return self._query(topic, partition, -2), self._query(topic, partition, -1)

    def partition_counts(self) -> dict[str, int]:
        listed = json.loads(self._run(["-L", "-J"]))
        return {each["topic"]: len(each["partitions"]) for each in listed["topics"]}

    def _consume(self, topic: str, start: str, partition: int) -> list[Consumed]:
        flags = ["-C", "-t", topic, "-p", str(partition), "-o", start, "-e", "-q", "-J"]
        flags += self._properties(
            {"topic.auto.offset.reset": "error", "fetch.wait.max.ms": FETCH_WAIT_MS}
        )
        # Only a line feed ends a line of its output; others may stand in a value.
        lines = self._run(flags).decode().split("\n")
        return [_consumed(json.loads(line)) for line in lines if line]

    def _query(self, topic: str, partition: int, timestamp_ms: int) -> int:
        answer = self._run(["-Q", "-t", f"{topic}:{partition}:{timestamp_ms}"]).decode()
        match = re.search(r"offset (-?\d+)\s*$", answer)
        assert match is not None, answer
        return int(match[1])

    def _line(self, message: Message) -> bytes:
        key = b"" if message.key is None else message.key + KEY_END.encode()
        return key + (message.value or b"") + MESSAGE_END.encode()

    def _properties(self, properties: dict[str, Any]) -> list[str]:
        return [part for each in properties.items() for part in ("-X", "=".join(map(str, each)))]

    def _run(self, flags: list[str], data: bytes = b"") -> bytes:
        command = [self._kcat, "-b", self._bootstrap, "-m", str(int(TIMEOUT_S)), *flags]
        done = subprocess.run(command, input=data, capture_output=True, timeout=TIMEOUT_S)
        complaint = done.stderr.decode(errors="replace")
        if done.returncode != 0:
            names = [name for text, name in ERRORS.items() if text in complaint]
            raise ClientError(names[0] if names else "-unknown", complaint)
        return done.stdout


def _consumed(envelope: dict[str, Any]) -> Consumed:
    def data(text: str | None) -> bytes | None:
        return None if text is None else text.encode()

    flat = envelope.get("headers") or []
    headers: Headers = tuple(
        (name, data(value)) for name, value in zip(flat[::2], flat[1::2], strict=True)
    )
    return Consumed(
        envelope["offset"],
        envelope["ts"],
        envelope["tstype"] == "logappend",
        data(envelope["key"]),
        data(envelope["payload"]),
        headers,
    )
