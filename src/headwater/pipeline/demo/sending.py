"""Sends the shop's records with the client, at a pace that people can watch.

Records go out in slices of the shop's time, and a slice is acknowledged as a whole before the next
begins. So at every moment what is in the topics is all of the stream up to some slice and part of
the next, whatever partition is slow: which is why no record comes later than the stream says.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from headwater.client.producer.producer import Producer
from headwater.pipeline.demo.shop import ShopRecord

SLICE_MS: Final = 30_000


class SentRecord(NamedTuple):
    """A record, and where it was written."""

    topic: str
    partition: int
    offset: int
    key: bytes
    value: bytes


def slices(records: Sequence[ShopRecord]) -> Iterator[list[ShopRecord]]:
    """The records of each slice of the shop's time that has some, in their order."""
    for _, group in groupby(records, key=lambda record: record.sent_ms // SLICE_MS):
        yield list(group)


def send_wave(
    address: str,
    records: Sequence[ShopRecord],
    *,
    seconds: float,
    on_progress: Callable[[list[SentRecord]], None],
) -> list[SentRecord]:
    """Send all records within about `seconds`; `on_progress` is told of each slice when it is in.

    With 0 seconds it is as fast as it goes. A record that cannot be written ends it with the
    error.
    """
    sent: list[SentRecord] = []
    parts = list(slices(records))
    start = time.monotonic()
    with Producer(bootstrap_servers=address, linger_ms=5, compression_type="zstd") as producer:
        for number, part in enumerate(parts, 1):
            futures = [producer.send(each.topic, each.value, each.key) for each in part]
            producer.flush()
            written = [future.result() for future in futures]
            now_sent = [
                SentRecord(place.topic, place.partition, place.offset, each.key, each.value)
                for each, place in zip(part, written, strict=True)
            ]
            sent += now_sent
            on_progress(now_sent)
            time.sleep(max(0.0, start + seconds * number / len(parts) - time.monotonic()))
    return sent
