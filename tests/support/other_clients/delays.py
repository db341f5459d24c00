"""Delayed records as the tests of clients send and check them."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import NamedTuple

from headwater.wire.delayed.delayed_batch import DelayedRecord, decode_delayed_batch
from headwater.wire.delayed.headers import DELAYED_OFFSET_HEADER, ORDER_HEADER, SENT_AT_HEADER
from headwater.wire.records import iter_batch_headers
from tests.support.command import run_command
from tests.support.other_clients.contract import Client, Consumed, Headers, Message, Start
from tests.support.waiting import eventually

HOUR = "1h"
#: What a broker adds to the headers of a record that it delivers.
ADDED = (SENT_AT_HEADER, DELAYED_OFFSET_HEADER, ORDER_HEADER)


class GroupLag(NamedTuple):
    """Of a partition, as `headwater groups describe` tells."""

    committed: int | None
    end: int
    lag: int | None


def now_ms() -> int:
    return int(time.time() * 1000)


def delayed(value: bytes, delay: str | int, partition: int = 0, **more: str) -> Message:
    """A message for `headwater-delay`; other headers are named with underscores."""
    headers: Headers = (("headwater-delay", str(delay).encode()),)
    headers += tuple((name.replace("_", "-"), text.encode()) for name, text in more.items())
    return Message(value, b"key of " + value, headers, partition)


def sent_headers(record: Consumed) -> Headers:
    """Those that were sent."""
    return tuple(each for each in record.headers if each[0] not in ADDED)


def is_copy(record: Consumed) -> bool:
    return tuple(name for name, _ in record.headers[-3:]) == ADDED


def delayed_offset(record: Consumed) -> int:
    """The offset that names the message which was delivered."""
    return int(dict(record.headers)[DELAYED_OFFSET_HEADER] or b"-1")


def consume_in_time(client: Client, topic: str, count: int, partition: int = 0) -> list[Consumed]:
    """Read until so many have come, again and again to the end; none may come early."""
    found: list[Consumed] = []

    def read() -> bool:
        start: Start = found[-1].offset + 1 if found else "earliest"
        more = client.consume(topic, start, partition)
        arrived_ms = now_ms()
        assert [each for each in more if is_copy(each) and each.timestamp_ms > arrived_ms] == []
        found.extend(more)
        return len(found) >= count

    eventually(read)
    return found


def in_log(log_dir: Path | None, topic: str, partition: int = 0) -> list[DelayedRecord]:
    """The records of all delayed batches that lie in a partition, delivered or not."""
    assert log_dir is not None
    found: list[DelayedRecord] = []
    for path in sorted((log_dir / f"{topic}-{partition}").glob("*.log")):
        data = path.read_bytes()
        for position, header in iter_batch_headers(data):
            if header.is_delayed:
                found += decode_delayed_batch(data, position)
    return found


def group_lags(bootstrap: str, group: str) -> dict[int, GroupLag]:
    """By partition, of the one topic that the group has read."""
    described = run_command("groups", "describe", group, "--json", "--bootstrap-server", bootstrap)
    assert described.exit_code == 0, described.stderr
    rows = [json.loads(line) for line in described.lines]
    return {
        row["partition"]: GroupLag(row["current_offset"], row["log_end_offset"], row["lag"])
        for row in rows
    }
