"""A topic with records in it while it is needed, written as fast as the broker takes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from bench.broker.request_load import RequestLoad, frames_for_all, records_per_batch
from bench.broker.servers import Server

_FILL_TIMEOUT_S = 600.0


class FilledTopic(NamedTuple):
    name: str
    record_count: int


@contextmanager
def filled_topic(
    server: Server,
    name: str,
    partition_count: int,
    record_size_bytes: int,
    total_bytes: int,
    *,
    key_size_bytes: int | None = None,
) -> Iterator[FilledTopic]:
    """At least so many bytes of values, in batches as large as a producer's."""
    with server.topic(name, partition_count) as topic:
        frames = frames_for_all(
            topic, partition_count, record_size_bytes, key_size_bytes=key_size_bytes
        )
        frame_bytes = record_size_bytes * records_per_batch(record_size_bytes)
        frame_count = max(1, total_bytes // frame_bytes)
        with RequestLoad(server.port, frames, connection_count=1, in_flight=5) as load:
            load.run(_FILL_TIMEOUT_S, frame_count)
        with server.connect() as client:
            record_count = client.record_count(topic, partition_count)
        yield FilledTopic(topic, record_count)
