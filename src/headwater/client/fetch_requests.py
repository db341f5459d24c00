"""Fetches from one broker over a connection: one request at a time, each with its answer."""

import uuid
from collections.abc import Mapping
from typing import Final

from headwater.base.ids import TopicPartition
from headwater.client.cluster_connection import ClusterConnection
from headwater.client.errors import refusal
from headwater.client.fetch_conversation import FetchAnswer, FetchConversation, FetchLimits
from headwater.client.fetch_session import SESSION_ERRORS, FetchPosition
from headwater.client.isolation import IsolationLevel
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.fetch import FetchResponse

__all__ = ["BrokerFetch", "FetchAnswer", "FetchLimits"]

#: What a broker may take longer than it was asked to wait.
ANSWER_GRACE_S: Final = 30.0


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
        self._timeout_s = limits.max_wait_ms / 1000 + ANSWER_GRACE_S
        self._conversation = FetchConversation(
            limits=limits,
            isolation_level=isolation_level,
            use_session=use_session,
            check_crc=check_crc,
        )

    async def fetch(self, offsets: Mapping[TopicPartition, int]) -> FetchAnswer:
        """One request for partitions of this broker; waits as long as the limits say."""
        wanted = {
            partition: FetchPosition(self._topic_id(partition.topic), offset)
            for partition, offset in offsets.items()
        }
        request = self._conversation.request(wanted)
        try:
            version = self._conversation.version_max
            if version is not None:
                version = await self._connection.highest_version(
                    ApiKey.FETCH, self.broker_id, version
                )
            response = await self._connection.ask(
                request, FetchResponse, self.broker_id, version=version, timeout_s=self._timeout_s
            )
        except BaseException:
            self._conversation.failed()
            raise
        answer = self._conversation.answered(response)
        if response.error_code and response.error_code not in SESSION_ERRORS:
            raise refusal(response.error_code, None, f"Fetching from broker {self.broker_id}")
        return answer

    def _topic_id(self, topic: str) -> uuid.UUID:
        return self._connection.metadata.existing_topic(topic).topic_id
