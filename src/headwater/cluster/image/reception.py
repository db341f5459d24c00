"""From the controller's message to the image that a broker has when it has followed it.

The message is checked while it is read, against `rules` and against the image that it is to
change. One that cannot be true is refused as a whole: then nothing has changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from types import MappingProxyType

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import topic_id_to_text
from headwater.cluster.image.change import ImageChange, ImageEdits
from headwater.cluster.image.image import (
    BrokerInfo,
    ClusterImage,
    ConfigImage,
    ConfigResource,
    EndpointInfo,
    PartitionImage,
    ResourceKind,
    TopicImage,
)
from headwater.cluster.image.rules import (
    ImageFaultError,
    check_broker,
    check_config,
    check_distinct,
    check_number,
    check_partition,
    check_resource,
    check_topic_id,
    check_topic_name,
)
from headwater.wire.cluster_messages.update_image import (
    UpdatedBroker,
    UpdatedConfig,
    UpdatedConfigEntry,
    UpdatedPartition,
    UpdatedTopic,
    UpdateImageRequest,
)


class InvalidImageError(KafkaError):
    """A message says what cannot be."""

    code = ErrorCode.INVALID_REQUEST


def fits(image: ClusterImage, request: UpdateImageRequest) -> bool:
    """Whether the message goes on top of this image."""
    return request.is_snapshot or (
        request.controller_epoch == image.controller_epoch and request.from_version == image.version
    )


def updated(image: ClusterImage, request: UpdateImageRequest) -> ImageChange:
    """The change that a message which `fits` brings about; raises `InvalidImageError`."""
    edits = ImageEdits()
    try:
        _check_header(image, request)
        _edit_brokers(edits, image, request)
        _edit_topics(edits, image, request)
        _edit_configs(edits, image, request)
    except ImageFaultError as error:
        raise InvalidImageError(str(error)) from None
    change = edits.apply(image)
    return replace(
        change,
        image=replace(
            change.image,
            cluster_id=request.cluster_id,
            controller_id=request.controller_id,
            controller_epoch=request.controller_epoch,
            version=request.to_version,
            unreadable_topics=frozenset(request.unreadable_topics),
        ),
    )


def _check_header(image: ClusterImage, request: UpdateImageRequest) -> None:
    check_number("The controller", request.controller_id)
    check_number("A controller epoch", request.controller_epoch)
    if request.to_version < 0:
        raise ImageFaultError(f"The version of an image cannot be {request.to_version}.")
    if image.cluster_id not in ("", request.cluster_id):
        raise ImageFaultError(f"This is cluster {image.cluster_id}, not {request.cluster_id!r}.")


# -- brokers -------------------------------------------------------------------------------------


def _edit_brokers(edits: ImageEdits, image: ClusterImage, request: UpdateImageRequest) -> None:
    check_distinct("The broker", (broker.broker_id for broker in request.brokers))
    heard = {broker.broker_id: _heard_broker(broker) for broker in request.brokers}
    gone = set(request.removed_brokers)
    if request.is_snapshot:
        gone |= image.brokers.keys() - heard.keys()
    edits.brokers.update(
        (broker_id, broker)
        for broker_id, broker in heard.items()
        if image.brokers.get(broker_id) != broker
    )
    edits.brokers.update((each, None) for each in sorted(gone) if each in image.brokers)


def _heard_broker(told: UpdatedBroker) -> BrokerInfo:
    endpoints = tuple(
        EndpointInfo(each.listener_name, each.host, each.port) for each in told.endpoints
    )
    broker = BrokerInfo(
        told.broker_id,
        endpoints,
        told.rack,
        told.broker_epoch,
        tuple(told.log_dirs),
        tuple(told.cordoned_log_dirs),
    )
    check_broker(broker)
    return broker


# -- topics --------------------------------------------------------------------------------------


def _edit_topics(edits: ImageEdits, image: ClusterImage, request: UpdateImageRequest) -> None:
    for name in request.unreadable_topics:
        check_topic_name(name)
    check_distinct("The topic", (topic.name for topic in request.topics))
    check_distinct("The topic id", (topic.topic_id for topic in request.topics))
    gone = {image.topic_names[each] for each in request.deleted_topics if each in image.topic_names}
    if request.is_snapshot:
        gone |= image.topics.keys() - {topic.name for topic in request.topics}
        # Of those the controller knows as little as this broker: they stay as they are.
        gone.difference_update(request.unreadable_topics)
    edits.topics.update((name, None) for name in sorted(gone))
    reader = _PartitionReader()
    for topic in request.topics:
        _check_topic(topic, image, gone)
        heard = reader.read(topic)
        known = image.topics.get(topic.name)
        if known is None or known.topic_id != topic.topic_id or max(heard) >= len(known.partitions):
            if max(heard) != len(heard) - 1:
                raise ImageFaultError(f"The topic {topic.name} lacks a partition.")
            partitions = tuple(heard[number] for number in range(len(heard)))
            edits.topics[topic.name] = TopicImage(topic.name, topic.topic_id, partitions)
            continue
        changed = {
            number: partition
            for number, partition in heard.items()
            if known.partitions[number] != partition
        }
        if changed:
            edits.partitions[topic.name] = changed


def _check_topic(topic: UpdatedTopic, image: ClusterImage, gone: set[str]) -> None:
    check_topic_name(topic.name)
    check_topic_id(topic.topic_id)
    namesake = image.topic_names.get(topic.topic_id, topic.name)
    if namesake != topic.name and namesake not in gone:
        text = topic_id_to_text(topic.topic_id)
        raise ImageFaultError(f"The topics {namesake} and {topic.name} have the same id, {text}.")
    if topic.name in gone and image.topics[topic.name].topic_id == topic.topic_id:
        raise ImageFaultError(f"The topic {topic.name} is there and deleted at once.")


class _PartitionReader:
    """Reads partitions, and checks each distinct one once."""

    def __init__(self) -> None:
        self._checked: dict[PartitionImage, PartitionImage] = {}

    def read(self, topic: UpdatedTopic) -> dict[int, PartitionImage]:
        """What is told of a topic's partitions, by their numbers."""
        heard: dict[int, PartitionImage] = {}
        for told in topic.partitions:
            check_number(f"A partition of {topic.name}", told.partition)
            heard[told.partition] = self._partition(told)
        if len(heard) != len(topic.partitions):
            raise ImageFaultError(f"The topic {topic.name} has a partition twice.")
        if not heard:
            raise ImageFaultError(f"The topic {topic.name} has no partitions.")
        return heard

    def _partition(self, told: UpdatedPartition) -> PartitionImage:
        partition = PartitionImage(
            tuple(told.replicas),
            tuple(told.isr),
            told.leader,
            told.leader_epoch,
            told.partition_epoch,
            tuple(told.adding),
            tuple(told.removing),
            told.throttle,
        )
        known = self._checked.get(partition)
        if known is None:
            check_partition(partition)
            known = self._checked[partition] = partition
        return known


# -- configurations ------------------------------------------------------------------------------


def _edit_configs(edits: ImageEdits, image: ClusterImage, request: UpdateImageRequest) -> None:
    heard: dict[ConfigResource, ConfigImage | None] = {}
    for told in (*request.configs, *request.named_configs):
        resource = _heard_resource(told)
        if resource in heard:
            raise ImageFaultError(f"The settings of {resource.name!r} are told more than once.")
        heard[resource] = None if told.entries is None else _heard_config(told, told.entries)
    if request.is_snapshot:
        heard.update((each, None) for each in sorted(image.configs.keys() - heard.keys()))
    edits.configs.update(
        (resource, config)
        for resource, config in heard.items()
        if image.configs.get(resource) != config
    )


def _heard_resource(told: UpdatedConfig) -> ConfigResource:
    try:
        resource = ConfigResource(ResourceKind(told.kind), told.name)
    except ValueError:
        raise ImageFaultError(f"There is no kind {told.kind} of resources.") from None
    check_resource(resource)
    return resource


def _heard_config(told: UpdatedConfig, entries: Iterable[UpdatedConfigEntry]) -> ConfigImage:
    configs = {entry.name: entry.value for entry in entries}
    config = ConfigImage(MappingProxyType(configs), told.version)
    check_config(config)
    return config
