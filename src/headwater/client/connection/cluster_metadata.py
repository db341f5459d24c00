"""What a client knows of a cluster: its brokers, and the topics it asked for.

Sans-io: `ClusterMetadata` learns from the answers that the connection receives, and answers from
memory. Knowledge grows old without anyone noticing, so whoever is told that it was wrong (a broker
that does not lead, a topic that is not there) has it refreshed and asks again.
"""

import uuid
from collections.abc import Iterable
from typing import NamedTuple

from headwater.base.errors import ErrorCode
from headwater.base.ids import ZERO_TOPIC_ID
from headwater.client.connection.bootstrap import Address
from headwater.client.errors import UnknownTopicError, topic_refusal
from headwater.wire.messages.metadata import MetadataResponse, MetadataResponseTopic

NO_LEADER = -1


class BrokerNode(NamedTuple):
    """A broker, and the address that the cluster gives for it."""

    broker_id: int
    address: Address
    rack: str | None = None


class PartitionInfo(NamedTuple):
    partition: int
    leader_id: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()
    eligible_leaders: tuple[int, ...] = ()
    last_known_eligible_leaders: tuple[int, ...] = ()

    @property
    def has_leader(self) -> bool:
        return self.leader_id != NO_LEADER


class TopicInfo(NamedTuple):
    """A topic that exists; `partitions` are in the order of their numbers."""

    name: str
    topic_id: uuid.UUID
    is_internal: bool
    partitions: tuple[PartitionInfo, ...]

    @property
    def has_id(self) -> bool:
        return self.topic_id != ZERO_TOPIC_ID

    def partition(self, number: int) -> PartitionInfo:
        """The partition of that number; raises `UnknownTopicError`."""
        # Numbers are without gaps, unless the answer left out partitions in trouble.
        if 0 <= number < len(self.partitions) and self.partitions[number].partition == number:
            return self.partitions[number]
        for partition in self.partitions:
            if partition.partition == number:
                return partition
        raise UnknownTopicError.partition(self.name, number, len(self.partitions))


class ClusterMetadata:
    """The newest of what brokers told."""

    def __init__(self) -> None:
        self.cluster_id: str | None = None
        self.controller_id = NO_LEADER
        self.brokers: dict[int, BrokerNode] = {}
        self._topics: dict[str, TopicInfo] = {}
        self._topic_errors: dict[str, int] = {}
        self._names_by_id: dict[uuid.UUID, str] = {}

    def learn(self, response: MetadataResponse, asked_names: Iterable[str] | None) -> None:
        """Take over an answer to a question about `asked_names`, or about all topics if None."""
        self.cluster_id = response.cluster_id
        self.controller_id = response.controller_id
        self.brokers = {
            broker.node_id: BrokerNode(
                broker.node_id, Address(broker.host, broker.port), broker.rack
            )
            for broker in response.brokers
        }
        former = {
            name: self._forget(name)
            for name in (list(self._topics) if asked_names is None else asked_names)
        }
        for topic in response.topics:
            self._learn_topic(topic, former.get(topic.name or ""))

    def topic(self, name: str) -> TopicInfo | None:
        """The topic if it was asked for and exists."""
        return self._topics.get(name)

    def existing_topic(self, name: str) -> TopicInfo:
        """The topic, or the error with which the cluster answered for it."""
        topic = self._topics.get(name)
        if topic is not None:
            return topic
        error_code = self._topic_errors.get(name, int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        raise topic_refusal(error_code, None, name)

    def is_missing(self, name: str) -> bool:
        """Whether the cluster was asked for the topic, and does not have it."""
        return self._topic_errors.get(name) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def topics(self) -> list[TopicInfo]:
        """All that are known, by name."""
        return sorted(self._topics.values())

    def name_of(self, topic_id: uuid.UUID) -> str | None:
        return self._names_by_id.get(topic_id)

    def leader_of(self, topic: str, partition: int) -> int:
        """The leader's id, or `NO_LEADER`; raises `UnknownTopicError` for what does not exist."""
        leader_id = self.existing_topic(topic).partition(partition).leader_id
        return leader_id if leader_id in self.brokers else NO_LEADER

    def _learn_topic(self, topic: MetadataResponseTopic, former: TopicInfo | None) -> None:
        name = topic.name
        if name is None:
            return
        if topic.error_code:
            self._topic_errors[name] = topic.error_code
            return
        self._topics[name] = _newest(topic_info(topic, name), former)
        if topic.topic_id != ZERO_TOPIC_ID:
            self._names_by_id[topic.topic_id] = name

    def _forget(self, name: str) -> TopicInfo | None:
        """Forget a topic; returns what was known of it."""
        self._topic_errors.pop(name, None)
        former = self._topics.pop(name, None)
        if former is not None:
            self._names_by_id.pop(former.topic_id, None)
        return former


def _newest(told: TopicInfo, former: TopicInfo | None) -> TopicInfo:
    """What is told of a topic, but for partitions of which a later leader is known already.

    A broker that lost touch still tells of the leaders it knew, itself among them. A producer that
    believed it would send to a log that lacks what the leader has acknowledged since, and be told
    that its numbers are out of order.
    """
    if former is None or former.topic_id != told.topic_id:
        return told
    known = {partition.partition: partition for partition in former.partitions}
    partitions = [
        before
        if (before := known.get(after.partition)) is not None
        and 0 <= after.leader_epoch < before.leader_epoch
        else after
        for after in told.partitions
    ]
    return told._replace(partitions=tuple(partitions))


def topic_info(topic: MetadataResponseTopic, name: str) -> TopicInfo:
    """A topic of an answer, as the rest of the client sees it."""
    partitions = (
        PartitionInfo(
            partition=partition.partition_index,
            leader_id=partition.leader_id,
            leader_epoch=partition.leader_epoch,
            replicas=tuple(partition.replica_nodes),
            isr=tuple(partition.isr_nodes),
            offline_replicas=tuple(partition.offline_replicas),
        )
        for partition in topic.partitions
    )
    return TopicInfo(name, topic.topic_id, topic.is_internal, tuple(sorted(partitions)))
