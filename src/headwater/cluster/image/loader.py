"""Builds the cluster image from what the metadata store holds.

Most partitions of a cluster have equal states, so each distinct document is read once and each
distinct partition kept once: ten thousand partitions load in a few milliseconds.

A topic with very many partitions is not made in one transaction. If a controller stopped in
between, some of them have no state: they are in the image as `unwritten_partition`, for the next
controller to complete.

A node that cannot be read, or that says what cannot be, is left out with one line in the log, and
the rest of the cluster loads. A topic that is left out so stays known by its name: what brokers
have of it is neither deleted nor set aside (`ClusterImage.unreadable_topics`). Settings that cannot
be read count as none, and may be written anew.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Final

from headwater.cluster.brokers.registration import load_brokers
from headwater.cluster.controller.election import controller_named
from headwater.cluster.image.image import (
    NO_CONTROLLER,
    NO_LEADER,
    ClusterImage,
    ConfigImage,
    ConfigResource,
    PartitionImage,
    ResourceKind,
    TopicImage,
)
from headwater.cluster.image.layered_map import LayeredMap
from headwater.cluster.image.rules import (
    ImageFaultError,
    check_partition,
    check_resource,
    check_topic_name,
)
from headwater.cluster.node_documents import (
    UNREADABLE,
    CorruptNodeError,
    TopicDocument,
    corrupt,
    decode_cluster_id,
    decode_configs,
    decode_partition_state,
    decode_topic,
)
from headwater.cluster.node_locations import (
    BROKER_CONFIGS,
    CLIENT_METRICS_CONFIGS,
    CLUSTER_ID,
    CONTROLLER,
    DEFAULT_ENTITY,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    TOPICS,
    name_of_node,
    partition_state_path,
    topic_path,
)
from headwater.cluster.store.metadata_store import MetadataStore, Node

_logger = logging.getLogger(__name__)

#: Called with each node that cannot be read; what it raises ends the loading.
LeaveOut = Callable[[CorruptNodeError], None]

_CONFIG_NODES: Final = {
    TOPIC_CONFIGS: ResourceKind.TOPIC,
    BROKER_CONFIGS: ResourceKind.BROKER,
    CLIENT_METRICS_CONFIGS: ResourceKind.CLIENT_METRICS,
    GROUP_CONFIGS: ResourceKind.GROUP,
}


def unwritten_partition(replicas: tuple[int, ...]) -> PartitionImage:
    """A partition that is assigned to brokers and has no state."""
    return PartitionImage(replicas, (), NO_LEADER, -1, -1)


def _log_left_out(error: CorruptNodeError) -> None:
    _logger.error("%s It is left out.", error)


async def load_image(store: MetadataStore, leave_out: LeaveOut = _log_left_out) -> ClusterImage:
    """Everything the store says, but for what cannot be read; raises CorruptNodeError only where
    not even the cluster's id can be."""
    cluster_id = await store.exists(CLUSTER_ID)
    controller = await store.exists(CONTROLLER)
    topics, unreadable = await _load_topics(store, leave_out)
    configs: dict[ConfigResource, ConfigImage] = {}
    for parent, kind in _CONFIG_NODES.items():
        configs |= await _load_configs(store, parent, kind, leave_out)
    return ClusterImage(
        cluster_id="" if cluster_id is None else decode_cluster_id(CLUSTER_ID, cluster_id.data),
        controller_id=NO_CONTROLLER if controller is None else controller_named(controller),
        brokers=await load_brokers(store),
        topics=LayeredMap(topics),
        topic_names=LayeredMap({topic.topic_id: topic.name for topic in topics.values()}),
        configs=LayeredMap(configs),
        unreadable_topics=unreadable,
    )


async def _load_topics(
    store: MetadataStore, leave_out: LeaveOut
) -> tuple[dict[str, TopicImage], frozenset[str]]:
    """The topics by name, and the names of those that cannot be read."""
    names = [name for name in await store.children(TOPICS) if _is_topic_name(name, leave_out)]
    nodes = await store.get_many([topic_path(name) for name in names])
    unreadable: set[str] = set()
    documents: dict[str, TopicDocument] = {}
    known: dict[bytes, TopicDocument] = {}
    for name, node in zip(names, nodes, strict=True):
        if node is not None:
            try:
                documents[name] = decode_topic(topic_path(name), node.data, known)
            except CorruptNodeError as error:
                unreadable.add(name)
                leave_out(error)
    state_paths = [
        partition_state_path(name, partition)
        for name, document in documents.items()
        for partition in range(len(document.replicas))
    ]
    states = iter(zip(state_paths, await store.get_many(state_paths), strict=True))
    reader = _PartitionReader()
    topics: dict[str, TopicImage] = {}
    names_by_id: dict[uuid.UUID, str] = {}
    for name, document in documents.items():
        # Taken whole in any case, so that the next topic finds its own.
        some = list(islice(states, len(document.replicas)))
        try:
            namesake = names_by_id.setdefault(document.topic_id, name)
            if namesake != name:
                raise CorruptNodeError(topic_path(name), f"its id is that of {namesake}")
            partitions = reader.read(document, some)
            topics[name] = TopicImage(name, document.topic_id, partitions)
        except CorruptNodeError as error:
            unreadable.add(name)
            leave_out(error)
    return topics, frozenset(unreadable)


def _is_topic_name(name: str, leave_out: LeaveOut) -> bool:
    try:
        check_topic_name(name)
    except ImageFaultError as error:
        leave_out(corrupt(topic_path(name), error))
        return False
    return True


class _PartitionReader:
    """Reads states of partitions, each distinct one once."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[int, ...], bytes, int], PartitionImage] = {}

    def read(
        self, document: TopicDocument, states: Iterable[tuple[str, Node | None]]
    ) -> tuple[PartitionImage, ...]:
        """Pair each partition's replicas with its state; raises CorruptNodeError."""
        partitions = tuple(
            self._partition(brokers, path, node)
            for brokers, (path, node) in zip(document.replicas, states, strict=True)
        )
        if not document.adding and not document.removing:
            return partitions
        return tuple(
            # One without a state has nothing that could move, and only a move has a throttle.
            each._replace(
                adding=document.adding.get(number, ()),
                removing=document.removing.get(number, ()),
                throttle=document.throttles.get(number, 0),
            )
            if each.isr and (number in document.adding or number in document.removing)
            else each
            for number, each in enumerate(partitions)
        )

    def _partition(self, replicas: tuple[int, ...], path: str, node: Node | None) -> PartitionImage:
        if node is None:
            return unwritten_partition(replicas)
        key = (replicas, node.data, node.version)
        partition = self._known.get(key)
        if partition is None:
            state = decode_partition_state(path, node.data)
            partition = PartitionImage(
                replicas, state.isr, state.leader, state.leader_epoch, node.version
            )
            try:
                check_partition(partition)
            except UNREADABLE as error:
                raise corrupt(path, error) from error
            self._known[key] = partition
        return partition


async def _load_configs(
    store: MetadataStore, parent: str, kind: ResourceKind, leave_out: LeaveOut
) -> dict[ConfigResource, ConfigImage]:
    names = await store.children(parent)
    paths = [f"{parent}/{name}" for name in names]
    known: dict[tuple[bytes, int], ConfigImage] = {}
    loaded: dict[ConfigResource, ConfigImage] = {}
    for name, path, node in zip(names, paths, await store.get_many(paths), strict=True):
        if node is None:
            continue
        try:
            resource = _resource(path, kind, name)
        except CorruptNodeError as error:
            leave_out(error)
            continue
        key = (node.data, node.version)
        if key not in known:
            known[key] = ConfigImage(_configs(path, node.data, leave_out), node.version)
        loaded[resource] = known[key]
    return loaded


def _configs(path: str, data: bytes, leave_out: LeaveOut) -> Mapping[str, str]:
    try:
        return MappingProxyType(decode_configs(path, data))
    except CorruptNodeError as error:
        leave_out(error)
        return MappingProxyType({})


def _resource(path: str, kind: ResourceKind, name: str) -> ConfigResource:
    try:
        if kind is ResourceKind.BROKER and name == DEFAULT_ENTITY:
            name = ""
        elif kind in (ResourceKind.CLIENT_METRICS, ResourceKind.GROUP):
            name = name_of_node(name)
        resource = ConfigResource(kind, name)
        check_resource(resource)
    except ValueError as error:
        raise corrupt(path, error) from error
    return resource
