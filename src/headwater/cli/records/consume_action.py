"""What `headwater consume` does: reads partitions and prints records until it is told to stop."""

from __future__ import annotations

import asyncio
import sys
from typing import BinaryIO, Final, NamedTuple

from headwater.base.ids import TopicPartition
from headwater.cli.interruption import cancelled_by_signals
from headwater.cli.records.record_format import FormatRecords
from headwater.cli.records.start_offsets import Start, find_partitions, start_offsets
from headwater.client.admin import OffsetTime
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.consumer.async_consumer import AsyncConsumer
from headwater.client.fetch.isolation import IsolationLevel

#: How often to look for new partitions and topics.
LOOK_INTERVAL_S: Final = 5.0
#: How many records are printed at a time.
RECORDS_MAX: Final = 10_000


class ConsumeOptions(NamedTuple):
    topic: str | None
    pattern: str | None
    partition: int | None
    start: Start
    max_messages: int | None
    timeout_ms: int | None
    isolation_level: IsolationLevel
    format_records: FormatRecords


class Consumption:
    """One run of the command; `count` is how many records it has printed."""

    def __init__(
        self, connection: ClusterConnection, bootstrap: str, options: ConsumeOptions
    ) -> None:
        """The connection is for questions; records come over the consumer's own."""
        self.count = 0
        self._connection = connection
        self._bootstrap = bootstrap
        self._options = options
        self._loop = asyncio.get_running_loop()
        self._out: BinaryIO = sys.stdout.buffer

    async def run(self) -> None:
        """Print until enough was printed, nothing came for long enough, or a signal came."""
        options = self._options
        is_late = options.start == Start(time=OffsetTime.LATEST)
        try:
            with cancelled_by_signals():
                async with AsyncConsumer(
                    {"isolation.level": options.isolation_level.name.lower()},
                    bootstrap_servers=self._bootstrap,
                    auto_offset_reset="latest" if is_late else "earliest",
                    allow_auto_create_topics=False,
                ) as consumer:
                    await self._assign(consumer, await self._find_partitions(), options.start)
                    await self._print_all(consumer)
        except asyncio.CancelledError:
            pass

    async def _print_all(self, consumer: AsyncConsumer) -> None:
        timeout_ms = self._options.timeout_ms
        limit_s = None if timeout_ms is None else timeout_ms / 1000
        last_s = looked_s = self._loop.time()
        while not self._has_enough():
            now_s = self._loop.time()
            if now_s >= looked_s + LOOK_INTERVAL_S:
                await self._add_new_partitions(consumer)
                looked_s = now_s
            wait_s = looked_s + LOOK_INTERVAL_S - now_s
            if limit_s is not None:
                wait_s = min(wait_s, max(0.0, last_s + limit_s - now_s))
            records = await consumer.poll(wait_s, self._wanted_count())
            if records:
                self._out.write(self._options.format_records(records))
                self._out.flush()
                self.count += len(records)
                last_s = self._loop.time()
            elif limit_s is not None and self._loop.time() >= last_s + limit_s:
                return

    def _wanted_count(self) -> int:
        max_messages = self._options.max_messages
        return RECORDS_MAX if max_messages is None else min(RECORDS_MAX, max_messages - self.count)

    def _has_enough(self) -> bool:
        max_messages = self._options.max_messages
        return max_messages is not None and self.count >= max_messages

    async def _find_partitions(self) -> list[TopicPartition]:
        options = self._options
        return await find_partitions(
            self._connection, options.topic, options.pattern, options.partition
        )

    async def _add_new_partitions(self, consumer: AsyncConsumer) -> None:
        """Whatever is new is read from its beginning, since all of it is."""
        known = consumer.assignment()
        added = [key for key in await self._find_partitions() if key not in known]
        if added:
            await self._assign(consumer, added, Start(time=OffsetTime.EARLIEST))

    async def _assign(
        self, consumer: AsyncConsumer, partitions: list[TopicPartition], start: Start
    ) -> None:
        """Read these from there on, besides what is read already."""
        offsets = await start_offsets(
            self._connection, partitions, start, self._options.isolation_level
        )
        consumer.assign([*consumer.assignment(), *offsets])
        for partition, offset in offsets.items():
            consumer.seek(partition, offset)
