"""Builds the cluster image from what the metadata store holds.

Most partitions of a cluster have equal states, so each distinct document is read once and each
distinct partition kept once: ten thousand partitions load in a few milliseconds.

A topic with very many partitions is not made in one transaction. If a controller stopped in
between, some of them have no state: they are in the image as `unwritten_partition`, for the next
controller to complete.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

from headwater.cluster.broker_registration import load_brokers
from headwater.cluster.image import (
    NO_CONTROLLER,
    NO_LEADER,
    ClusterImage,
    ConfigImage,
    ConfigResource,
    PartitionImage,
    ResourceKind,
    TopicImage,
)
from headwater.cluster.layered_map import LayeredMap
from headwater.cluster.node_documents import (
    Assignments,
    decode_cluster_id,
    decode_configs,
    decode_controller,
    decode_partition_state,
    decode_topic,
)
from headwater.cluster.node_locations import (
    BROKER_CONFIGS,
    CLUSTER_ID,
    CONTROLLER,
    DEFAULT_ENTITY,
    TOPIC_CONFIGS,
    TOPICS,
    partition_state_path,
    topic_path,
)
from headwater.cluster.store.metadata_store import MetadataStore, Node


def unwritten_partition(replicas: tuple[int, ...]) -> PartitionImage:
    """A partition that is assigned to brokers and has no state."""
    return PartitionImage(replicas, (), NO_LEADER, -1, -1)


async def load_image(store: MetadataStore) -> ClusterImage:
    """Everything the store says; raises CorruptNodeError."""
    cluster_id = await store.exists(CLUSTER_ID)
    controller = await store.exists(CONTROLLER)
    topics = await _load_topics(store)
    configs = await _load_configs(store, TOPIC_CONFIGS, ResourceKind.TOPIC)
    configs |= await _load_configs(store, BROKER_CONFIGS, ResourceKind.BROKER)
    return ClusterImage(
        cluster_id="" if cluster_id is None else decode_cluster_id(CLUSTER_ID, cluster_id.data),
        controller_id=NO_CONTROLLER
        if controller is None
        else decode_controller(CONTROLLER, controller.data),
        brokers=await load_brokers(store),
        topics=LayeredMap(topics),
        topic_names=LayeredMap({topic.topic_id: topic.name for topic in topics.values()}),
        configs=LayeredMap(configs),
    )


async def _load_topics(store: MetadataStore) -> dict[str, TopicImage]:
    names = await store.children(TOPICS)
    paths = [topic_path(name) for name in names]
    nodes = await store.get_many(paths)
    known: dict[bytes, Assignments] = {}
    documents = [
        (name, decode_topic(path, node.data, known))
        for name, path, node in zip(names, paths, nodes, strict=True)
        if node is not None
    ]
    state_paths = [
        partition_state_path(name, partition)
        for name, document in documents
        for partition in range(len(document.replicas))
    ]
    states = iter(zip(state_paths, await store.get_many(state_paths), strict=True))
    reader = _PartitionReader()
    return {
        name: TopicImage(name, document.topic_id, reader.read(document.replicas, states))
        for name, document in documents
    }


class _PartitionReader:
    """Reads states of partitions, each distinct one once."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[int, ...], bytes, int], PartitionImage] = {}

    def read(
        self,
        replicas: Iterable[tuple[int, ...]],
        states: Iterable[tuple[str, Node | None]],
    ) -> tuple[PartitionImage, ...]:
        """Pair each partition's replicas with the next of the states, and take no more of them."""
        return tuple(
            self._partition(brokers, path, node)
            for brokers, (path, node) in zip(replicas, states, strict=False)
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
            self._known[key] = partition
        return partition


async def _load_configs(
    store: MetadataStore, parent: str, kind: ResourceKind
) -> dict[ConfigResource, ConfigImage]:
    names = await store.children(parent)
    paths = [f"{parent}/{name}" for name in names]
    known: dict[tuple[bytes, int], ConfigImage] = {}
    loaded: dict[ConfigResource, ConfigImage] = {}
    for name, path, node in zip(names, paths, await store.get_many(paths), strict=True):
        if node is None:
            continue
        key = (node.data, node.version)
        if key not in known:
            configs = MappingProxyType(decode_configs(path, node.data))
            known[key] = ConfigImage(configs, node.version)
        loaded[ConfigResource(kind, "" if name == DEFAULT_ENTITY else name)] = known[key]
    return loaded
