"""Keeps the routes to topics up to date, and waits for topics that are not known yet.

Routes change with the metadata, on the loop; whoever sends reads them from any thread.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.connection.cluster_metadata import ClusterMetadata
from headwater.client.connection.metadata_upkeep import MetadataUpkeep
from headwater.client.producer.batches.accumulator import RecordAccumulator
from headwater.client.producer.errors import TopicNotKnownError
from headwater.client.producer.intake.record_intake import ForTopic
from headwater.client.producer.intake.topic_route import TopicRoute


class TopicFinder:
    def __init__(
        self,
        metadata: ClusterMetadata,
        upkeep: MetadataUpkeep,
        accumulator: RecordAccumulator,
        *,
        is_adaptive: bool,
        generator: random.Random,
        wake: Callable[[], None],
    ) -> None:
        self.routes: dict[str, TopicRoute] = {}
        self._metadata = metadata
        self._upkeep = upkeep
        self._accumulator = accumulator
        self._is_adaptive = is_adaptive
        self._generator = generator
        self._wake = wake
        #: Who waits for news, in the order in which they came.
        self._news: dict[asyncio.Future[None], None] = {}
        #: Why nobody has to be waited for any more.
        self._ended: KafkaError | None = None
        upkeep.on_change(self._learned)

    @property
    def waiter_count(self) -> int:
        """How many wait for a topic; from any thread."""
        return len(self._news)

    async def find(self, wait: ForTopic, timeout_s: float) -> None:
        """Wait until a topic is known; raises what the cluster says, or that time is over."""
        self._upkeep.add_topics([wait.name])
        if wait.is_known:
            self._upkeep.is_stale()
        error: KafkaError | None = None
        version = self._upkeep.version
        try:
            async with asyncio.timeout(timeout_s):
                while wait.name not in self.routes or (
                    wait.is_known and self._upkeep.version == version
                ):
                    self._check_goes_on()
                    self._wake()
                    await self._next_news()
                    error = self._error_of(wait.name)
                    if error is not None and not error.retriable:
                        raise error
                    if error is not None:
                        self._upkeep.is_stale()
        except TimeoutError:
            cause = error or self._upkeep.failure
            reason = f": {cause}" if cause is not None else "."
            raise TopicNotKnownError(
                f"Topic {wait.name!r} was not found within max.block.ms{reason}"
            ) from cause

    def end(self, error: KafkaError) -> None:
        """The producer cannot go on: whoever waits hears why."""
        self._ended = error
        self._tell_news()

    def _check_goes_on(self) -> None:
        if self._ended is not None:
            raise type(self._ended)(*self._ended.args)

    def _error_of(self, name: str) -> KafkaError | None:
        try:
            self._metadata.existing_topic(name)
        except KafkaError as error:
            return error
        return None

    async def _next_news(self) -> None:
        """Wait for the next answer about metadata."""
        news = asyncio.get_running_loop().create_future()
        self._news[news] = None
        try:
            await news
        finally:
            del self._news[news]

    def _learned(self) -> None:
        for name in sorted(self._upkeep.topics):
            self._learn_route(name)
        self._tell_news()

    def _tell_news(self) -> None:
        for news in self._news:
            if not news.done():
                news.set_result(None)

    def _learn_route(self, name: str) -> None:
        topic = self._metadata.topic(name)
        if topic is None or not topic.partitions:
            self.routes.pop(name, None)
            return
        count = topic.partitions[-1].partition + 1
        queues = [self._accumulator.queue(TopicPartition(name, number)) for number in range(count)]
        route = TopicRoute(
            topic,
            queues,
            batch_size_bytes=self._accumulator.batch_size_bytes,
            is_adaptive=self._is_adaptive,
            generator=self._generator,
        )
        known = self.routes.get(name)
        if known is None or not known.is_like(route):
            self.routes[name] = route
