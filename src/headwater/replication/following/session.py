"""A follower's half of an incremental fetch session with its leader. Sans-io.

The leader remembers which partitions are fetched and from where, so a request names only those
whose position has changed, and an answer only those with news. The session has an id, which the
leader gives with the answer to a full request (epoch 0), and an epoch that grows with each request.
Whenever something is unclear the next request is a full one.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Final

from headwater.base.errors import ErrorCode
from headwater.replication.following.options import FetcherOptions
from headwater.replication.following.partition import FollowedKey, FollowedPartition
from headwater.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)

NO_SESSION_ID: Final = 0
FULL_EPOCH: Final = 0
EPOCH_MAX: Final = 2**31 - 1

#: Errors of a whole answer after which a full request helps.
SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


class FollowerSession:
    def __init__(self) -> None:
        self._session_id = NO_SESSION_ID
        self._epoch = FULL_EPOCH

    @property
    def is_full(self) -> bool:
        """Whether the next request must name every partition."""
        return self._epoch == FULL_EPOCH

    def start_again(self) -> None:
        """Nothing is known any more of what the leader remembers."""
        self._session_id = NO_SESSION_ID
        self._epoch = FULL_EPOCH

    def answered(self, session_id: int) -> None:
        """An answer without an error of its own has come."""
        if session_id == NO_SESSION_ID:
            self.start_again()  # The leader has no room for another session.
            return
        self._session_id = session_id
        self._epoch = 1 if self._epoch == EPOCH_MAX else self._epoch + 1

    def request(
        self,
        named: Iterable[FollowedPartition],
        forgotten: Iterable[FollowedKey],
        options: FetcherOptions,
        *,
        node_id: int,
        broker_epoch: int,
    ) -> FetchRequest:
        """The next request; each partition that it names is told its position."""
        topics: dict[uuid.UUID, FetchTopic] = {}
        for followed in named:
            topic_id, number = followed.key
            topic = topics.get(topic_id)
            if topic is None:
                name = followed.partition.topic_partition.topic
                topic = topics[topic_id] = FetchTopic(topic=name, topic_id=topic_id)
            position = followed.told = followed.position()
            topic.partitions.append(
                FetchPartition(
                    partition=number,
                    current_leader_epoch=position.leader_epoch,
                    fetch_offset=position.offset,
                    last_fetched_epoch=position.last_fetched_epoch,
                    log_start_offset=position.log_start_offset,
                    partition_max_bytes=options.max_partition_bytes,
                )
            )
        dropped: dict[uuid.UUID, ForgottenTopic] = {}
        for topic_id, number in forgotten:
            if topic_id not in dropped:
                dropped[topic_id] = ForgottenTopic(topic_id=topic_id)
            dropped[topic_id].partitions.append(number)
        return FetchRequest(
            replica_id=node_id,
            replica_state=ReplicaState(replica_id=node_id, replica_epoch=broker_epoch),
            max_wait_ms=options.max_wait_ms,
            min_bytes=options.min_bytes,
            max_bytes=options.max_bytes,
            session_id=self._session_id,
            session_epoch=self._epoch,
            topics=list(topics.values()),
            forgotten_topics_data=list(dropped.values()),
        )
