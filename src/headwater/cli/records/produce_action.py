"""What `headwater produce` does: every line of standard input becomes a record."""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from headwater.base.errors import KafkaError
from headwater.cli.interruption import cancelled_by_signals
from headwater.cli.records.deliveries import Deliveries
from headwater.cli.records.input_lines import input_lines
from headwater.cli.records.line_format import LineFormat
from headwater.client.producer.async_producer import AsyncProducer
from headwater.client.producer.intake.delay_request import DelayArguments

#: For lines that are not written yet, and so for the longest one too: whether a topic takes that is
#: for the broker to say.
BUFFER_BYTES: Final = 32 << 20


class ProduceOptions(NamedTuple):
    topic: str
    line_format: LineFormat
    partition: int | None
    headers: tuple[tuple[str, bytes | None], ...]
    #: Empty for records that are delivered at once.
    delay: DelayArguments
    acks: str
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


async def produce(bootstrap: str, options: ProduceOptions) -> ProduceReport:
    """Write until the input ends, or until a line or the cluster is at fault; then tell."""
    failure: KafkaError | None = None
    was_interrupted = False
    deliveries = Deliveries()
    # Leaving the block writes the rest: whatever stopped the reading, the lines before it count.
    async with _make_producer(bootstrap, options) as producer:
        try:
            with cancelled_by_signals():
                await _send_lines(producer, deliveries, options)
        except KafkaError as error:
            failure = error
        except asyncio.CancelledError:
            was_interrupted = True
    return ProduceReport(
        deliveries.written_count,
        deliveries.failed_count,
        was_interrupted,
        failure or deliveries.failure,
    )


def _make_producer(bootstrap: str, options: ProduceOptions) -> AsyncProducer:
    linger_ms = min(options.linger_ms, options.delivery_timeout_ms - 1)
    is_numbered = options.acks in ("all", "-1")
    return AsyncProducer(
        {"acks": options.acks, "compression.type": options.compression},
        bootstrap_servers=bootstrap,
        linger_ms=linger_ms,
        batch_size=options.batch_size_bytes,
        buffer_memory=BUFFER_BYTES,
        max_request_size=BUFFER_BYTES,
        # A request cannot take longer than all attempts together may.
        request_timeout_ms=min(options.request_timeout_ms, options.delivery_timeout_ms - linger_ms),
        delivery_timeout_ms=options.delivery_timeout_ms,
        max_block_ms=options.max_block_ms,
        # Lines stay in their order: by their numbers, or because only one request is under way.
        max_in_flight_requests_per_connection=5 if is_numbered else 1,
    )


async def _send_lines(
    producer: AsyncProducer, deliveries: Deliveries, options: ProduceOptions
) -> None:
    topic, partition, headers = options.topic, options.partition, options.headers
    line_format, note, delay = options.line_format, deliveries.note, options.delay
    line_number = 0
    # An unknown topic should be told before the first line is typed.
    await producer.partitions_for(topic)
    async for lines in input_lines():
        if deliveries.failed_count:
            # Going on would only add to what is lost.
            return
        if line_format.is_plain:
            for line in lines:
                await producer.send(
                    topic,
                    line,
                    partition=partition,
                    headers=headers,
                    on_delivery=note,
                    **delay,
                )
            line_number += len(lines)
            continue
        for line in lines:
            line_number += 1
            parsed = line_format.parse(line, line_number)
            await producer.send(
                topic,
                parsed.value,
                parsed.key,
                partition=partition,
                headers=headers + parsed.headers,
                on_delivery=note,
                **delay,
            )
