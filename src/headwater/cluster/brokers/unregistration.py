"""What the cluster forgets of a broker that was stopped for good.

A broker is registered for as long as its session with the metadata store lives. What may outlive it
is little: the settings that were changed for it alone, the mark of a return that was not worked off
(`/brokers/unclean/<id>`), and its place in the lists of replicas. The first two are removed. Where
its replicas are belongs to the partitions, which are moved off it before it is stopped; while some
name it the mark stays too, since it says that this broker must not lead them if it comes back.

Nothing here reads or writes: `plan_unregistration` answers with what to write.
"""

from __future__ import annotations

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.brokers.registration import ReturnMark
from headwater.cluster.image.image import NO_CONFIGS, ClusterImage, ConfigResource, ResourceKind
from headwater.cluster.node_locations import broker_config_path, unclean_broker_path
from headwater.cluster.store.metadata_store import Delete, Operation


def config_resource(broker_id: int) -> ConfigResource:
    """The settings of this broker alone."""
    return ConfigResource(ResourceKind.BROKER, str(broker_id))


def plan_unregistration(
    broker_id: int, image: ClusterImage, mark: ReturnMark | None, *, is_alive: bool
) -> list[Operation]:
    """What removes the leftovers; KafkaError for a broker that lives, or left nothing.

    One that lives is refused: its session would go on, so it would go on to serve what others lead.
    """
    if is_alive:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Broker {broker_id} is alive: drain it and stop it for good, then unregister it.",
        )
    version = image.config(config_resource(broker_id)).version
    holds_replicas = _holds_replicas(broker_id, image)
    if version == NO_CONFIGS and mark is None and not holds_replicas:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker {broker_id} is not registered."
        )
    operations: list[Operation] = []
    if version != NO_CONFIGS:
        operations.append(Delete(broker_config_path(broker_id), version))
    if mark is not None and not holds_replicas:
        operations.append(Delete(unclean_broker_path(broker_id), mark.version))
    return operations


def _holds_replicas(broker_id: int, image: ClusterImage) -> bool:
    return any(
        broker_id in partition.replicas
        for topic in image.topics.values()
        for partition in topic.partitions
    )
