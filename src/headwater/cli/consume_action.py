"""What `headwater consume` does: reads partitions and prints records until it is told to stop."""

from __future__ import annotations

import asyncio
import sys
from typing import BinaryIO, Final, NamedTuple

from headwater.base.ids import TopicPartition
from headwater.cli.interruption import cancelled_by_signals
from headwater.cli.record_format import FormatRecords
from headwater.cli.start_offsets import Start, find_partitions, start_offsets
from headwater.client.admin import OffsetTime
from headwater.client.cluster_connection import ClusterConnection
from headwater.client.fetched_partition import FetchedPartition
from headwater.client.isolation import IsolationLevel
from headwater.client.plain_fetcher import OffsetReset, PlainFetcher

#: How often to look for new partitions and topics.
LOOK_INTERVAL_S: Final = 5.0


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

    def __init__(self, connection: ClusterConnection, options: ConsumeOptions) -> None:
        self.count = 0
        self._connection = connection
        self._options = options
        self._loop = asyncio.get_running_loop()
        self._out: BinaryIO = sys.stdout.buffer

    async def run(self) -> None:
        """Print until enough was printed, nothing came for long enough, or a signal came."""
        options = self._options
        is_late = options.start == Start(time=OffsetTime.LATEST)
        try:
            with cancelled_by_signals():
                async with PlainFetcher(
                    self._connection,
                    isolation_level=options.isolation_level,
                    offset_reset=OffsetReset.LATEST if is_late else OffsetReset.EARLIEST,
                ) as fetcher:
                    partitions = await self._find_partitions()
                    fetcher.assign(
                        await start_offsets(
                            self._connection, partitions, options.start, options.isolation_level
                        )
                    )
                    await self._print_all(fetcher)
        except asyncio.CancelledError:
            pass

    async def _print_all(self, fetcher: PlainFetcher) -> None:
        timeout_ms = self._options.timeout_ms
        limit_s = None if timeout_ms is None else timeout_ms / 1000
        last_s = looked_s = self._loop.time()
        while not self._has_enough():
            now_s = self._loop.time()
            if now_s >= looked_s + LOOK_INTERVAL_S:
                await self._add_new_partitions(fetcher)
                looked_s = now_s
            wait_s = looked_s + LOOK_INTERVAL_S - now_s
            if limit_s is not None:
                wait_s = min(wait_s, max(0.0, last_s + limit_s - now_s))
            fetched = await fetcher.fetch(wait_s)
            former_count = self.count
            for partition in fetched:
                self._print(partition)
            self._out.flush()
            if self.count > former_count:
                last_s = self._loop.time()
            elif limit_s is not None and self._loop.time() >= last_s + limit_s:
                return

    def _print(self, partition: FetchedPartition) -> None:
        for batch in partition.batches():
            if self._has_enough():
                return
            records = batch.records
            if self._options.max_messages is not None:
                records = records[: self._options.max_messages - self.count]
            self._out.write(self._options.format_records(partition.topic_partition, batch, records))
            self.count += len(records)

    def _has_enough(self) -> bool:
        max_messages = self._options.max_messages
        return max_messages is not None and self.count >= max_messages

    async def _find_partitions(self) -> list[TopicPartition]:
        options = self._options
        return await find_partitions(
            self._connection, options.topic, options.pattern, options.partition
        )

    async def _add_new_partitions(self, fetcher: PlainFetcher) -> None:
        """Whatever is new is read from its beginning, since all of it is."""
        added = [key for key in await self._find_partitions() if key not in fetcher.positions]
        if added:
            fetcher.assign(
                await start_offsets(
                    self._connection,
                    added,
                    Start(time=OffsetTime.EARLIEST),
                    self._options.isolation_level,
                )
            )
