"""A simulated client that creates topics, and holds the broker to what it said about them."""

from __future__ import annotations

import uuid

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.sim.broker_link import BrokerLink, Unanswered
from headwater.sim.history import History, PropertyViolated
from headwater.wire.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from headwater.wire.messages.metadata import MetadataRequest, MetadataResponse

_TRY_AGAIN = frozenset({ErrorCode.REQUEST_TIMED_OUT, ErrorCode.KAFKA_STORAGE_ERROR})


class TopicClient:
    def __init__(self, link: BrokerLink, history: History) -> None:
        self._link = link
        self._history = history

    async def create(self, name: str, partition_count: int) -> list[TopicPartition]:
        """Create a topic, however often it has to be asked for."""
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(name=name, num_partitions=partition_count, replication_factor=1)
            ],
            timeout_ms=5_000,
        )
        is_first = True
        while True:
            try:
                answer = await self._link.ask(request, CreateTopicsResponse)
            except Unanswered:
                is_first = False
                await self._link.pause()
                continue
            result = answer.topics[0]
            if result.error_code == ErrorCode.NONE:
                self._history.topics[name] = result.topic_id
                break
            if result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS and not is_first:
                # An attempt that was not answered has worked after all.
                self._history.topics[name] = (await self.topics())[name]
                break
            if result.error_code not in _TRY_AGAIN:
                error = ErrorCode.from_wire(result.error_code)
                raise PropertyViolated(
                    f"a topic can be created: {name} got {error.name}, {result.error_message}"
                )
            is_first = False
            await self._link.pause()
        return [TopicPartition(name, number) for number in range(partition_count)]

    async def topics(self) -> dict[str, uuid.UUID]:
        """All topics that the broker knows, with their ids."""
        while True:
            try:
                answer = await self._link.ask(MetadataRequest(topics=None), MetadataResponse)
            except Unanswered:
                await self._link.pause()
                continue
            return {topic.name: topic.topic_id for topic in answer.topics if topic.name is not None}

    async def watch(self) -> None:
        """Look again and again whether all topics are there."""
        while True:
            # What is created while the question is under way need not be in the answer.
            known = dict(self._history.topics)
            History(topics=known).check_topics(await self.topics())
            await self._link.pause()
