"""A reader's conversation with one broker: fetch requests with a session, and what answers say.

Sans-io. At most one request is under way, whose answer says for each partition what came of it; it,
or its absence, is reported before the next one. Topics are named by id from version 13 on; for a
topic without an id the request has to be of an older version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from headwater.base.errors import KafkaError
from headwater.base.ids import ZERO_TOPIC_ID, TopicPartition
from headwater.client.errors import refusal
from headwater.client.fetch.fetched_partition import AbortedRange, FetchedPartition
from headwater.client.fetch.isolation import IsolationLevel
from headwater.client.fetch.session import FetchPosition, FetchSession
from headwater.client.kafka_errors import MessageTooLargeError
from headwater.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)

VERSION_WITHOUT_IDS_MAX: Final = 12
NO_REPLICA: Final = -1


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
    #: Replicas that the leader would rather have asked, which gives no records itself.
    preferred: dict[TopicPartition, int]


class FetchConversation:
    def __init__(
        self,
        *,
        limits: FetchLimits,
        isolation_level: IsolationLevel,
        use_session: bool = True,
        check_crc: bool = True,
        rack: str = "",
    ) -> None:
        self._limits = limits
        self._isolation_level = isolation_level
        self._check_crc = check_crc
        self._rack = rack
        self._session = FetchSession(use_session=use_session)
        self._wanted: Mapping[TopicPartition, FetchPosition] = {}

    def request(self, wanted: Mapping[TopicPartition, FetchPosition]) -> FetchRequest:
        """How to ask for these."""
        self._wanted = wanted
        limits = self._limits
        session_id, epoch, named, forgotten = self._session.next_request(wanted)
        topics: dict[str, FetchTopic] = {}
        for (name, partition), (topic_id, offset, leader_epoch) in named.items():
            if name not in topics:
                topics[name] = FetchTopic(topic=name, topic_id=topic_id)
            topics[name].partitions.append(
                FetchPartition(
                    partition=partition,
                    current_leader_epoch=leader_epoch,
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
            rack_id=self._rack,
        )

    @property
    def version_max(self) -> int | None:
        """The highest version in which the last request can be sent, if that is limited."""
        ids = (position.topic_id for position in self._wanted.values())
        return VERSION_WITHOUT_IDS_MAX if ZERO_TOPIC_ID in ids else None

    def failed(self) -> None:
        """No answer came."""
        self._session.failed()

    def answered(self, response: FetchResponse) -> FetchAnswer:
        """What the answer brought; nothing if its own error code says that it is none."""
        self._session.answered(response.error_code, response.session_id)
        wanted = self._wanted
        asked = {partition: position.offset for partition, position in wanted.items()}
        answer = FetchAnswer(asked, [], {}, {})
        if response.error_code:
            return answer
        names = {position.topic_id: partition.topic for partition, position in wanted.items()}
        for topic in response.responses:
            name = topic.topic or names.get(topic.topic_id, "")
            for data in topic.partitions:
                topic_partition = TopicPartition(name, data.partition_index)
                offset = asked.get(topic_partition)
                if offset is not None:
                    self._take(answer, topic_partition, offset, data)
        return answer

    def _take(
        self, answer: FetchAnswer, topic_partition: TopicPartition, offset: int, data: PartitionData
    ) -> None:
        if data.error_code:
            answer.errors[topic_partition] = refusal(data.error_code, None, str(topic_partition))
            return
        if data.preferred_read_replica != NO_REPLICA:
            answer.preferred[topic_partition] = data.preferred_read_replica
            return
        fetched = self._fetched(topic_partition, offset, data)
        has_others = any(other.has_batches for other in answer.fetched)
        # Only the first of an answer is given its batch whatever its size; others have a turn.
        if fetched.size_bytes and not fetched.has_batches and not has_others:
            answer.errors[topic_partition] = MessageTooLargeError(
                f"{topic_partition} has a batch at offset {offset} that is larger than "
                f"{self._limits.max_partition_bytes} bytes, the limit of this reader.",
            )
        else:
            answer.fetched.append(fetched)

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
