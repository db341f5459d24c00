"""Work that is not measured, so that what compiles at run time is compiled and files are open."""

from __future__ import annotations

from bench.broker import librdkafka_client
from bench.broker.request_load import RequestLoad, frames_for_all
from bench.broker.servers import Server

_PARTITION_COUNT = 6
_CONSUMED_COUNT_MAX = 200_000
#: Below this nobody means to measure anything.
_CONSUME_FROM_S = 1.0


def warm_up(server: Server, seconds: float) -> None:
    """Small and large records in, and some of them out again."""
    with server.topic("warm-up", _PARTITION_COUNT) as topic:
        for size_bytes in (100, 10_000):
            frames = frames_for_all(topic, _PARTITION_COUNT, size_bytes)
            with RequestLoad(server.port, frames, connection_count=4, in_flight=5) as load:
                load.run(seconds / 2)
        if seconds >= _CONSUME_FROM_S:
            with server.connect() as client:
                count = client.record_count(topic, _PARTITION_COUNT)
            librdkafka_client.run_job(
                "consume",
                bootstrap=server.bootstrap,
                topic=topic,
                partition_count=_PARTITION_COUNT,
                record_count=min(count, _CONSUMED_COUNT_MAX),
            )
