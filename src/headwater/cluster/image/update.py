"""From a cluster image to the message that brings another broker there.

A controller keeps for every broker what has been touched since that broker last answered
(`TouchedParts`). The message is made when it is sent, from the image of that moment: however many
changes there were meanwhile, each thing is told once and as it is now. `reception` is how the
other broker takes it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from headwater.cluster.image.change import ImageChange
from headwater.cluster.image.image import (
    BrokerInfo,
    ClusterImage,
    ConfigImage,
    ConfigResource,
    PartitionImage,
    ResourceKind,
    TopicImage,
)
from headwater.wire.cluster_messages.update_image import (
    UpdatedBroker,
    UpdatedConfig,
    UpdatedConfigEntry,
    UpdatedEndpoint,
    UpdatedPartition,
    UpdatedTopic,
    UpdateImageRequest,
)


class TouchedParts:
    """What one broker has not been told yet."""

    def __init__(self) -> None:
        self.brokers: set[int] = set()
        #: Topics of which all partitions are to be told.
        self.topics: set[str] = set()
        self.partitions: dict[str, set[int]] = {}
        self.deleted_topics: set[uuid.UUID] = set()
        self.configs: set[ConfigResource] = set()

    def add(self, change: ImageChange) -> None:
        self.brokers |= change.changed_brokers
        self.topics |= change.changed_topics
        for name, numbers in change.changed_partitions.items():
            self.partitions.setdefault(name, set()).update(numbers)
        self.deleted_topics.update(topic.topic_id for topic in change.deleted_topics)
        self.configs |= change.changed_configs

    def delta(self, image: ClusterImage, from_version: int) -> UpdateImageRequest:
        """The message that leads from `from_version`, which the broker has, to `image`."""
        request = _header(image, from_version)
        # Sorted, all of it, so that the same changes make the same message.
        brokers = sorted(self.brokers)
        request.brokers = [
            _told_broker(image.brokers[each]) for each in brokers if each in image.brokers
        ]
        request.removed_brokers = [each for each in brokers if each not in image.brokers]
        request.deleted_topics = sorted(self.deleted_topics)
        request.topics = [
            _told_topic(image.topics[name], range(len(image.topics[name].partitions)))
            for name in sorted(self.topics)
            if name in image.topics
        ]
        request.topics += [
            _told_topic(image.topics[name], sorted(numbers))
            for name, numbers in sorted(self.partitions.items())
            if name in image.topics and name not in self.topics
        ]
        for each in sorted(self.configs):
            _tell_config(request, each, image.configs.get(each))
        return request


def snapshot(image: ClusterImage) -> UpdateImageRequest:
    """The message that leads from anything to `image`."""
    request = _header(image, -1)
    request.is_snapshot = True
    request.brokers = [_told_broker(broker) for broker in image.brokers.values()]
    request.topics = [
        _told_topic(topic, range(len(topic.partitions))) for topic in image.topics.values()
    ]
    for each, config in image.configs.items():
        _tell_config(request, each, config)
    return request


def _header(image: ClusterImage, from_version: int) -> UpdateImageRequest:
    return UpdateImageRequest(
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        controller_epoch=image.controller_epoch,
        from_version=from_version,
        to_version=image.version,
        unreadable_topics=sorted(image.unreadable_topics),
    )


def _told_broker(broker: BrokerInfo) -> UpdatedBroker:
    return UpdatedBroker(
        broker_id=broker.broker_id,
        broker_epoch=broker.broker_epoch,
        rack=broker.rack,
        endpoints=[
            UpdatedEndpoint(listener_name=each.listener_name, host=each.host, port=each.port)
            for each in broker.endpoints
        ],
        log_dirs=list(broker.log_dirs),
        cordoned_log_dirs=list(broker.cordoned_log_dirs),
    )


def _told_topic(topic: TopicImage, numbers: Iterable[int]) -> UpdatedTopic:
    return UpdatedTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[_told_partition(number, topic.partitions[number]) for number in numbers],
    )


def _told_partition(number: int, partition: PartitionImage) -> UpdatedPartition:
    return UpdatedPartition(
        partition=number,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        adding=list(partition.adding),
        removing=list(partition.removing),
        throttle=partition.throttle,
    )


def _tell_config(
    request: UpdateImageRequest, resource: ConfigResource, config: ConfigImage | None
) -> None:
    told = UpdatedConfig(kind=resource.kind, name=resource.name)
    if config is not None:
        told.version = config.version
        told.entries = [
            UpdatedConfigEntry(name=name, value=value) for name, value in config.configs.items()
        ]
    is_older_kind = resource.kind in (ResourceKind.TOPIC, ResourceKind.BROKER)
    (request.configs if is_older_kind else request.named_configs).append(told)
