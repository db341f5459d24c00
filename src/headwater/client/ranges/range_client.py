"""`RangeClient`: a connection to a cluster over which ranges of offsets are read, one at a time.

    client = RangeClient({"bootstrap.servers": "127.0.0.1:9092"})
    for columns in client.read(TopicPartition("orders", 0), 100, 200):
        ...

It is for who knows exactly which offsets to read, such as a task of Spark: it joins no group and
commits nothing. Its connections stay open from one range to the next, because making them takes
longer than reading a small one, and are closed when nobody has read for a while; the next range
opens them again. It belongs to one thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator, Mapping
from typing import Final

import numpy as np

from headwater.base.ids import TopicPartition
from headwater.client.admin.admin_operations import AdminOperations
from headwater.client.admin.offsets import OffsetTime
from headwater.client.admin.outcomes import require_all
from headwater.client.columns.decoding.fetched_columns import decode_fetched
from headwater.client.columns.decoding.record_columns import RecordColumns
from headwater.client.fetch.conversation import FetchLimits
from headwater.client.fetch.corrupt_batches import CorruptBatches
from headwater.client.fetch.fetched_partition import FetchedPartition
from headwater.client.fetch.isolation import IsolationLevel
from headwater.client.machines.background_loop import BackgroundLoop
from headwater.client.ranges.range_fetches import RangeFetches, RangeFetchOptions
from headwater.client.settings.client_config import parse_settings
from headwater.client.settings.connection_settings import make_connection
from headwater.client.settings.consumer_settings import CONSUMER_SETTINGS

IDLE_S: Final = 60.0


class RangeClient:
    """Settings are those of a consumer, with Kafka's names."""

    def __init__(
        self,
        config: Mapping[str, object],
        *,
        progress_timeout_s: float = 120.0,
        idle_s: float = IDLE_S,
    ) -> None:
        values = parse_settings(CONSUMER_SETTINGS, config, {})
        is_committed_only = values.text("isolation.level") == "read_committed"
        self._options = RangeFetchOptions(
            limits=FetchLimits(
                min_bytes=values.integer("fetch.min.bytes"),
                max_wait_ms=values.integer("fetch.max.wait.ms"),
                max_bytes=values.integer("fetch.max.bytes"),
                max_partition_bytes=values.integer("max.partition.fetch.bytes"),
            ),
            isolation_level=(
                IsolationLevel.READ_COMMITTED
                if is_committed_only
                else IsolationLevel.READ_UNCOMMITTED
            ),
            check_crc=values.boolean("check.crcs"),
            rack=values.text("client.rack"),
            request_timeout_s=values.integer("request.timeout.ms") / 1000,
            progress_timeout_s=progress_timeout_s,
        )
        #: What is done about batches that cannot be read.
        self.corrupt = CorruptBatches.of_settings(values)
        self._idle_s = idle_s
        self._idle_timer: asyncio.TimerHandle | None = None
        self._background = BackgroundLoop("headwater-ranges")
        timeout_s = values.integer("default.api.timeout.ms") / 1000
        self._connection = make_connection(values, timeout_s=timeout_s)

    def read(
        self, topic_partition: TopicPartition, start: int, end: int, *, with_headers: bool = True
    ) -> RangeRead:
        """The records of a range, in order and in pieces."""
        fetches = RangeFetches(
            self._connection,
            self._options,
            topic_partition,
            start,
            end,
            post=self._background.call_soon,
        )
        return RangeRead(self, fetches, start, end, with_headers)

    @property
    def checks_crc(self) -> bool:
        return self._options.check_crc

    @property
    def is_connected(self) -> bool:
        """Whether a connection is open."""
        return self._connection.open_channel(None) is not None

    def bounds(self, topic_partition: TopicPartition) -> tuple[int, int]:
        """The first offset that there is, and the one after the last that can be read."""

        async def ask() -> tuple[int, int]:
            operations = AdminOperations(self._connection)
            found = [
                require_all(
                    await operations.list_offsets(
                        {topic_partition: time}, isolation_level=self._options.isolation_level
                    )
                )
                for time in (OffsetTime.EARLIEST, OffsetTime.LATEST)
            ]
            return found[0][topic_partition].offset, found[1][topic_partition].offset

        return self._background.run(ask())

    def close(self) -> None:
        """Close all connections and end the thread."""
        if not self._background.is_closed:
            self._background.run(self._connection.close())
            self._background.close()

    # -- whether anybody reads -------------------------------------------------------------------

    def begin(self) -> None:
        """Somebody reads: connections stay open."""
        self._background.call_soon(self._stop_timer)

    def end(self) -> None:
        """Nobody reads any more, for now."""
        self._background.call_soon(self._start_timer)

    def _stop_timer(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def _start_timer(self) -> None:
        self._stop_timer()
        loop = self._background.loop
        self._idle_timer = loop.call_later(self._idle_s, self._close_idle)

    def _close_idle(self) -> None:
        self._idle_timer = None
        self._closing = asyncio.ensure_future(self._connection.close_channels())


class RangeRead:
    """One range that is being read; iterate over it once.

    Raises `OffsetOutOfRangeError` and `UnknownTopicError` for what is not there any more, with all
    that came before it handed out; `position` is then the offset that was asked for.
    """

    def __init__(
        self, client: RangeClient, fetches: RangeFetches, start: int, end: int, with_headers: bool
    ) -> None:
        self._client = client
        self._fetches = fetches
        self._start = start
        self._end = end
        self._with_headers = with_headers

    @property
    def position(self) -> int:
        return self._fetches.position

    def __iter__(self) -> Generator[RecordColumns]:
        self._client.begin()
        try:
            for fetched in self._fetches:
                yield from fetched_columns(
                    fetched,
                    self._start,
                    self._end,
                    check_crc=self._client.checks_crc,
                    corrupt=self._client.corrupt,
                    with_headers=self._with_headers,
                )
        finally:
            self._client.end()


def fetched_columns(
    fetched: FetchedPartition,
    start: int,
    end: int,
    *,
    check_crc: bool,
    corrupt: CorruptBatches,
    with_headers: bool = True,
) -> Iterator[RecordColumns]:
    """The records with offsets from `start` to before `end`; pieces without any are left out.

    A fetch may begin before the range and end after it: what is outside is cut off before anything
    is copied. Control batches and those of aborted transactions do not appear.
    """
    groups = decode_fetched(
        fetched, start, check_crc=check_crc, with_headers=with_headers, corrupt=corrupt
    )
    for columns in groups:
        if columns.offsets[-1] < end:
            yield columns
            continue
        count = int(np.searchsorted(columns.offsets, end))
        if count:
            yield columns.part(0, count)
        return
