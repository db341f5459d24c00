"""What `headwater produce` does: every line of standard input becomes a record."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from headwater.base.errors import KafkaError
from headwater.cli.input_lines import input_lines
from headwater.cli.interruption import cancelled_by_signals
from headwater.cli.line_format import LineFormat
from headwater.client.cluster_connection import ClusterConnection
from headwater.client.plain_producer import PlainProducer
from headwater.wire.records import Compression


class ProduceOptions(NamedTuple):
    topic: str
    line_format: LineFormat
    partition: int | None
    headers: tuple[tuple[str, bytes | None], ...]
    acks: int
    compression: str
    linger_ms: int
    batch_size_bytes: int
    request_timeout_ms: int
    delivery_timeout_ms: int
    max_block_ms: int


class ProduceReport(NamedTuple):
    """How it went: `failure` is the first thing that went wrong."""

    written_count: int
    failed_count: int
    was_interrupted: bool
    failure: KafkaError | None


async def produce(connection: ClusterConnection, options: ProduceOptions) -> ProduceReport:
    """Write until the input ends, or until a line or the cluster is at fault; then tell."""
    failure: KafkaError | None = None
    was_interrupted = False
    producer = PlainProducer(
        connection,
        acks=options.acks,
        compression=Compression[options.compression.upper()],
        linger_ms=options.linger_ms,
        batch_size_bytes=options.batch_size_bytes,
        request_timeout_s=options.request_timeout_ms / 1000,
        delivery_timeout_s=options.delivery_timeout_ms / 1000,
        topic_timeout_s=options.max_block_ms / 1000,
    )
    try:
        with cancelled_by_signals():
            await _send_lines(producer, options)
    except KafkaError as error:
        failure = error
    except asyncio.CancelledError:
        was_interrupted = True
    try:
        # Whatever stopped the reading, the lines before it count.
        await producer.flush()
    except KafkaError as error:
        failure = failure or error
    finally:
        await producer.close()
    return ProduceReport(producer.delivered_count, producer.failed_count, was_interrupted, failure)


async def _send_lines(producer: PlainProducer, options: ProduceOptions) -> None:
    topic, partition, headers = options.topic, options.partition, options.headers
    line_format = options.line_format
    line_number = 0
    # An unknown topic should be told before the first line is typed.
    await producer.prepare(topic)
    async for lines in input_lines():
        if producer.failed_count:
            # Going on would only add to what is lost.
            return
        if line_format.is_plain:
            for line in lines:
                await producer.send(topic, line, partition=partition, headers=headers)
            line_number += len(lines)
            continue
        for line in lines:
            line_number += 1
            parsed = line_format.parse(line, line_number)
            await producer.send(
                topic,
                parsed.value,
                key=parsed.key,
                partition=partition,
                headers=headers + parsed.headers,
            )
