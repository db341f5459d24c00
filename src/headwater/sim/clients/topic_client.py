"""A simulated client that creates and deletes topics, and holds the broker to its word."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.sim.checkers.topic_life import check_topics
from headwater.sim.clients.broker_link import BrokerLink, Unanswered
from headwater.sim.histories.history import History, PropertyViolated
from headwater.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from headwater.wire.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from headwater.wire.messages.metadata import MetadataRequest, MetadataResponse

_TRY_AGAIN = frozenset(
    {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_CONTROLLER,
        # In a cluster, fewer brokers may be there than a topic needs.
        ErrorCode.INVALID_REPLICATION_FACTOR,
    }
)


class TopicClient:
    def __init__(self, link: BrokerLink, history: History, *, replication_factor: int = 1) -> None:
        self._link = link
        self._replication_factor = replication_factor
        self._history = history

    async def create(
        self, name: str, partition_count: int, settings: Mapping[str, str] | None = None
    ) -> list[TopicPartition]:
        """Create a topic, however often it has to be asked for."""
        configs = [
            CreatableTopicConfig(name=key, value=text) for key, text in (settings or {}).items()
        ]
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=name,
                    num_partitions=partition_count,
                    replication_factor=self._replication_factor,
                    configs=configs,
                )
            ],
            timeout_ms=5_000,
        )
        while True:
            try:
                answer = await self._link.ask(request, CreateTopicsResponse)
            except Unanswered:
                await self._link.pause()
                continue
            result = answer.topics[0]
            if result.error_code == ErrorCode.NONE:
                self._history.topics[name] = result.topic_id
                break
            if result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
                # An attempt that was not answered has worked after all, perhaps one of long ago.
                # The broker itself may not have followed the controller yet.
                topic_id = (await self.topics()).get(name)
                if topic_id is not None:
                    self._history.topics[name] = topic_id
                    break
            elif result.error_code not in _TRY_AGAIN:
                error = ErrorCode.from_wire(result.error_code)
                raise PropertyViolated(
                    f"a topic can be created: {name} got {error.name}, {result.error_message}"
                )
            await self._link.look_again()
            await self._link.pause()
        return [TopicPartition(name, number) for number in range(partition_count)]

    async def delete(self, name: str) -> None:
        """Delete a topic, however often it has to be asked for."""
        # From now on nobody can tell whether it is there, until an answer comes.
        topic_id = self._history.topics.pop(name)
        # By id, because a request that is late must not delete the next topic of that name.
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(topic_id=topic_id)], timeout_ms=5_000
        )
        is_first = True
        while True:
            try:
                answer = await self._link.ask(request, DeleteTopicsResponse)
            except Unanswered:
                is_first = False
                await self._link.pause()
                continue
            code = answer.responses[0].error_code
            if code == ErrorCode.NONE or (code == ErrorCode.UNKNOWN_TOPIC_ID and not is_first):
                self._history.deleted.add(topic_id)
                return
            if code not in _TRY_AGAIN:
                error = ErrorCode.from_wire(code)
                raise PropertyViolated(f"a topic can be deleted: {name} got {error.name}")
            is_first = False
            await self._link.look_again()
            await self._link.pause()

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
            # What comes and goes while the question is under way may be in the answer or not.
            known, gone = dict(self._history.topics), set(self._history.deleted)
            answer = await self.topics()
            still = self._history.topics
            topics = {name: each for name, each in known.items() if still.get(name) == each}
            check_topics(History(topics=topics, deleted=gone), answer)
            await self._link.pause()
