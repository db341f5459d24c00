"""What `headwater consume` does: reads partitions and prints records until it is told to stop.

A member of a group commits what it has printed, and nothing else. The consumer does it by itself:
from time to time, before partitions go to others, and at its end, however that comes about. Nothing
is read that is not printed at once, and what could not be printed is given back.
"""

from __future__ import annotations

import asyncio
import math
import sys
from typing import BinaryIO, Final, NamedTuple

from headwater.base.ids import TopicPartition
from headwater.cli.interruption import cancelled_by_signals
from headwater.cli.options.topic_pattern import compile_pattern
from headwater.cli.records.membership_option import Membership
from headwater.cli.records.record_format import FormatRecords
from headwater.cli.records.start_offsets import Start, find_partitions, start_offsets
from headwater.client.admin import OffsetTime
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.consumer.async_consumer import AsyncConsumer
from headwater.client.consumer.listeners import RebalanceListener
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.fetch.isolation import IsolationLevel

#: How often to look for new partitions and topics.
LOOK_INTERVAL_S: Final = 5.0
#: How long to wait at least for a group that lets nobody in yet.
JOIN_POLL_S_MIN: Final = 0.05
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
    membership: Membership


class Consumption(RebalanceListener):
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
        #: When something last came, or the group had let this member in.
        self._last_s = self._loop.time()
        self._is_member = options.membership.group_id is None

    async def run(self) -> None:
        """Print until enough was printed, nothing came for long enough, or a signal came."""
        try:
            with cancelled_by_signals():
                partitions = await self._find_partitions()
                async with self._make_consumer() as consumer:
                    if self._options.membership.group_id is None:
                        await self._assign(consumer, partitions, self._options.start)
                    else:
                        self._subscribe(consumer)
                    await self._print_all(consumer)
        except asyncio.CancelledError:
            pass

    def _make_consumer(self) -> AsyncConsumer:
        options = self._options
        is_late = options.start == Start(time=OffsetTime.LATEST)
        settings = {
            "isolation.level": options.isolation_level.name.lower(),
            "auto.offset.reset": "latest" if is_late else "earliest",
            "bootstrap.servers": self._bootstrap,
            "allow.auto.create.topics": "false",
        }
        if options.membership.group_id is not None:
            settings["group.id"] = options.membership.group_id
        return AsyncConsumer(settings | options.membership.settings)

    def _subscribe(self, consumer: AsyncConsumer) -> None:
        options = self._options
        if options.topic is not None:
            consumer.subscribe([options.topic], listener=self)
        elif options.pattern is not None:
            consumer.subscribe(pattern=compile_pattern(options.pattern).pattern, listener=self)

    def on_partitions_assigned(
        self, consumer: AsyncConsumer, partitions: frozenset[TopicPartition]
    ) -> None:
        """Joining takes a group its time, in which nothing can come."""
        if not self._is_member:
            self._is_member = True
            self._last_s = self._loop.time()

    async def _print_all(self, consumer: AsyncConsumer) -> None:
        timeout_ms = self._options.timeout_ms
        limit_s = math.inf if timeout_ms is None else timeout_ms / 1000
        is_subscribed = self._options.membership.group_id is not None
        looked_s = self._loop.time()
        while not self._has_enough():
            now_s = self._loop.time()
            if now_s >= looked_s + LOOK_INTERVAL_S:
                if not is_subscribed:
                    await self._add_new_partitions(consumer)
                looked_s = now_s
            wait_s = looked_s + LOOK_INTERVAL_S - now_s
            if self._is_member:
                wait_s = min(wait_s, max(0.0, self._last_s + limit_s - now_s))
            else:
                # There may be nothing to read for this member, which it learns between two polls.
                wait_s = min(wait_s, max(limit_s, JOIN_POLL_S_MIN))
            records = await consumer.poll(wait_s, self._wanted_count())
            if records:
                self._print(consumer, records)
            elif self._is_member and self._loop.time() >= self._last_s + limit_s:
                return

    def _print(self, consumer: AsyncConsumer, records: list[ConsumerRecord]) -> None:
        try:
            self._out.write(self._options.format_records(records))
            self._out.flush()
        except OSError:
            # Nobody has read them, so they are not to be committed.
            for record in reversed(records):
                consumer.seek(TopicPartition(record.topic, record.partition), record.offset)
            raise
        self.count += len(records)
        self._last_s = self._loop.time()

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
