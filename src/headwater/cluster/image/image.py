"""The cluster image: what brokers know about their cluster, as values that do not change.

Handlers read it between two awaits and may keep parts of it: a change makes a new image, which
shares with the old one whatever stayed the same. Only the controller, or what it sends to other
brokers, brings a new image about.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from headwater.base.ids import DELAY_TOPIC_PREFIX, TRACE_TOPIC
from headwater.cluster.image.layered_map import LayeredMap

#: What the brokers keep for themselves.
BROKERS_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state", "__audit"})

NO_LEADER: Final = -1
NO_CONTROLLER: Final = -1
#: The version of a resource's configuration that was never set.
NO_CONFIGS: Final = -1


class EndpointInfo(NamedTuple):
    """Where a broker listens; an empty host means: wherever the client reached it."""

    listener_name: str
    host: str
    port: int


class BrokerInfo(NamedTuple):
    """A live broker."""

    broker_id: int
    endpoints: tuple[EndpointInfo, ...]
    rack: str | None = None
    #: Grows with every registration of the broker: tells one life of it from the next.
    broker_epoch: int = -1
    #: Where it keeps its logs.
    log_dirs: tuple[str, ...] = ()
    #: Those of them that get no new logs, by what it was started with.
    cordoned_log_dirs: tuple[str, ...] = ()


class PartitionImage(NamedTuple):
    """Who holds a partition and who leads it."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    #: Counts the changes of the partition's state.
    partition_epoch: int
    #: While it moves: the replicas that it did not have before, and those that it will not keep.
    #: One that is in both was asked for by a move that was given up; it goes either way.
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    #: How many bytes a second a broker may send, or receive, for replicas that are being added; 0
    #: is as many as it can. It belongs to the move and goes with it.
    throttle: int = 0

    @property
    def is_moving(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas that it will have, the preferred leader first."""
        return _without(self.replicas, self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """The replicas that it had before it began to move, and has again if that is cancelled."""
        return _without(self.replicas, self.adding)


@dataclass(frozen=True, slots=True)
class TopicImage:
    """A topic; the index of a partition is its number."""

    name: str
    topic_id: uuid.UUID
    partitions: tuple[PartitionImage, ...]

    @property
    def is_internal(self) -> bool:
        return is_internal(self.name)

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].target)

    def with_partitions(self, changed: Mapping[int, PartitionImage]) -> TopicImage:
        """The same topic with some of its partitions in another state."""
        partitions = list(self.partitions)
        for number, partition in changed.items():
            partitions[number] = partition
        return TopicImage(self.name, self.topic_id, tuple(partitions))


class ResourceKind(IntEnum):
    """What can have a configuration; the numbers are those of the protocol."""

    TOPIC = 2
    BROKER = 4
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """A topic, a group or a subscription to clients' metrics by its name, a broker by its number,
    or all brokers by the empty name."""

    kind: ResourceKind
    name: str


class ConfigImage(NamedTuple):
    """What is set for one resource, and how often it was changed."""

    configs: Mapping[str, str]
    version: int


_NOTHING_SET: Final = ConfigImage(MappingProxyType({}), NO_CONFIGS)


@dataclass(frozen=True, slots=True)
class ClusterImage:
    """One state of the cluster."""

    cluster_id: str = ""
    controller_id: int = NO_CONTROLLER
    #: Which controller made this image: epochs count the elections.
    controller_epoch: int = 0
    #: Counts the images of one controller.
    version: int = 0
    brokers: Mapping[int, BrokerInfo] = field(default_factory=dict)
    topics: LayeredMap[str, TopicImage] = field(default_factory=LayeredMap)
    topic_names: LayeredMap[uuid.UUID, str] = field(default_factory=LayeredMap)
    configs: LayeredMap[ConfigResource, ConfigImage] = field(default_factory=LayeredMap)
    #: Topics that the metadata store has and that cannot be read there. They are not in `topics`;
    #: whoever knows one from before keeps it as it was, for its nodes may be repaired.
    unreadable_topics: frozenset[str] = frozenset()

    def topic_by_id(self, topic_id: uuid.UUID) -> TopicImage | None:
        name = self.topic_names.get(topic_id)
        return None if name is None else self.topics[name]

    def topic_configs(self, name: str) -> Mapping[str, str]:
        """What is set for a topic itself; not what it inherits."""
        return self.config(ConfigResource(ResourceKind.TOPIC, name)).configs

    def broker_configs(self, broker_id: int | None) -> Mapping[str, str]:
        """What is set dynamically for a broker itself, or with None for all brokers."""
        name = "" if broker_id is None else str(broker_id)
        return self.config(ConfigResource(ResourceKind.BROKER, name)).configs

    def group_configs(self, group_id: str) -> Mapping[str, str]:
        """What is set for a group itself; it need not exist."""
        return self.config(ConfigResource(ResourceKind.GROUP, group_id)).configs

    def client_metrics_configs(self, name: str) -> Mapping[str, str]:
        """What a subscription to the metrics of clients says; it need not exist."""
        return self.config(ConfigResource(ResourceKind.CLIENT_METRICS, name)).configs

    def configured(self, kind: ResourceKind) -> list[str]:
        """The names of all resources of a kind for which something is set."""
        return sorted(each.name for each in self.configs if each.kind is kind)

    def config(self, resource: ConfigResource) -> ConfigImage:
        """What is set for a resource, with the version to name when changing it."""
        return self.configs.get(resource, _NOTHING_SET)


def _without(replicas: tuple[int, ...], others: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(each for each in replicas if each not in others) if others else replicas


def is_brokers_own(topic: str) -> bool:
    """Whether the topic belongs to the brokers themselves, which alone write to it."""
    return topic in BROKERS_TOPICS


def is_internal(topic: str) -> bool:
    """Whether it is none of the users' topics: left out of lists, patterns and auto-creation.

    Clients may write to those of a delay service and to that of traces, and to no others.
    """
    return is_brokers_own(topic) or topic == TRACE_TOPIC or topic.startswith(DELAY_TOPIC_PREFIX)
