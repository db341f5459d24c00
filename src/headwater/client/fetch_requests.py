"""Fetch requests: what one broker is asked for in the partitions that it leads, and its answer.

One `BrokerFetch` belongs to one broker and has at most one request under way, whose answer says for
each partition what came of it. Topics are named by id from version 13 on; a broker whose metadata
have no ids is asked in an older version.
"""

import uuid
from collections.abc import Mapping
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import ZERO_TOPIC_ID, TopicPartition
from headwater.client.cluster_connection import ClusterConnection
from headwater.client.errors import refusal
from headwater.client.fetch_session import SESSION_ERRORS, FetchPosition, FetchSession
from headwater.client.fetched_partition import AbortedRange, FetchedPartition
from headwater.client.isolation import IsolationLevel
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)

VERSION_WITHOUT_IDS_MAX: Final = 12
#: What a broker may take longer than it was asked to wait.
ANSWER_GRACE_S: Final = 30.0


class FetchLimits(NamedTuple):
    """How much and how long, with the names and mostly the defaults of Kafka's consumer."""

    min_bytes: int = 1
    max_wait_ms: int = 500
    max_bytes: int = 50 << 20
    max_partition_bytes: int = 1 << 20


class FetchAnswer(NamedTuple):
    """What came of each partition that has news, and the offset that each was asked for from."""

    asked: Mapping[TopicPartition, int]
    fetched: list[FetchedPartition]
    errors: dict[TopicPartition, KafkaError]


class BrokerFetch:
    """The fetch requests to one broker."""

    def __init__(
        self,
        connection: ClusterConnection,
        broker_id: int,
        *,
        limits: FetchLimits,
        isolation_level: IsolationLevel,
        use_session: bool,
        check_crc: bool,
    ) -> None:
        self.broker_id = broker_id
        self._connection = connection
        self._limits = limits
        self._isolation_level = isolation_level
        self._check_crc = check_crc
        self._session = FetchSession(use_session=use_session)

    async def fetch(self, offsets: Mapping[TopicPartition, int]) -> FetchAnswer:
        """One request for partitions of this broker; waits as long as the limits say."""
        asked = dict(offsets)
        wanted = {
            partition: FetchPosition(self._topic_id(partition.topic), offset)
            for partition, offset in asked.items()
        }
        has_ids = all(position.topic_id != ZERO_TOPIC_ID for position in wanted.values())
        version = None
        if not has_ids:
            version = await self._connection.highest_version(
                ApiKey.FETCH, self.broker_id, VERSION_WITHOUT_IDS_MAX
            )
        try:
            response = await self._connection.ask(
                self._request(wanted),
                FetchResponse,
                self.broker_id,
                version=version,
                timeout_s=self._limits.max_wait_ms / 1000 + ANSWER_GRACE_S,
            )
        except BaseException:
            self._session.failed()
            raise
        self._session.answered(response.error_code, response.session_id)
        if response.error_code in SESSION_ERRORS:
            return FetchAnswer(asked, [], {})
        if response.error_code:
            raise refusal(response.error_code, None, f"Fetching from broker {self.broker_id}")
        names = {position.topic_id: partition.topic for partition, position in wanted.items()}
        return self._answer(asked, response, names)

    def _topic_id(self, topic: str) -> uuid.UUID:
        return self._connection.metadata.existing_topic(topic).topic_id

    def _request(self, wanted: Mapping[TopicPartition, FetchPosition]) -> FetchRequest:
        limits = self._limits
        session_id, epoch, named, forgotten = self._session.next_request(wanted)
        topics: dict[str, FetchTopic] = {}
        for (name, partition), (topic_id, offset) in named.items():
            if name not in topics:
                topics[name] = FetchTopic(topic=name, topic_id=topic_id)
            topics[name].partitions.append(
                FetchPartition(
                    partition=partition,
                    fetch_offset=offset,
                    partition_max_bytes=limits.max_partition_bytes,
                )
            )
        dropped: dict[str, ForgottenTopic] = {}
        for (name, partition), topic_id in forgotten.items():
            if name not in dropped:
                dropped[name] = ForgottenTopic(topic=name, topic_id=topic_id)
            dropped[name].partitions.append(partition)
        return FetchRequest(
            replica_id=-1,
            max_wait_ms=limits.max_wait_ms,
            min_bytes=limits.min_bytes,
            max_bytes=limits.max_bytes,
            isolation_level=self._isolation_level,
            session_id=session_id,
            session_epoch=epoch,
            topics=list(topics.values()),
            forgotten_topics_data=list(dropped.values()),
        )

    def _answer(
        self,
        asked: Mapping[TopicPartition, int],
        response: FetchResponse,
        names: Mapping[uuid.UUID, str],
    ) -> FetchAnswer:
        answer = FetchAnswer(asked, [], {})
        for topic in response.responses:
            name = topic.topic or names.get(topic.topic_id, "")
            for data in topic.partitions:
                topic_partition = TopicPartition(name, data.partition_index)
                offset = asked.get(topic_partition)
                if offset is None:
                    continue
                if data.error_code:
                    answer.errors[topic_partition] = refusal(
                        data.error_code, None, str(topic_partition)
                    )
                    continue
                fetched = self._fetched(topic_partition, offset, data)
                if fetched.size_bytes and not fetched.has_batches:
                    answer.errors[topic_partition] = KafkaError(
                        ErrorCode.MESSAGE_TOO_LARGE,
                        f"{topic_partition} has a batch at offset {offset} that is larger than "
                        f"{self._limits.max_partition_bytes} bytes, the limit of this reader.",
                    )
                else:
                    answer.fetched.append(fetched)
        return answer

    def _fetched(
        self, topic_partition: TopicPartition, offset: int, data: PartitionData
    ) -> FetchedPartition:
        return FetchedPartition(
            topic_partition,
            offset,
            data.records if isinstance(data.records, bytes | bytearray | memoryview) else b"",
            high_watermark=data.high_watermark,
            last_stable_offset=data.last_stable_offset,
            log_start_offset=data.log_start_offset,
            isolation_level=self._isolation_level,
            aborted=[
                AbortedRange(aborted.first_offset, aborted.producer_id)
                for aborted in data.aborted_transactions or ()
            ],
            check_crc=self._check_crc,
        )
