"""What is written when the configuration of a resource changes.

A change replaces all that is set for a resource. A group, or a subscription to clients' metrics,
for which nothing is left has no node any more. Whoever merges single settings into what he read
names the version that he read, and is refused if somebody else was faster; then he reads again.
"""

from __future__ import annotations

from collections.abc import Mapping

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.image.image import NO_CONFIGS, ClusterImage, ConfigResource, ResourceKind
from headwater.cluster.image.rules import broker_id_from_text
from headwater.cluster.node_documents import encode_configs
from headwater.cluster.node_locations import (
    broker_config_path,
    client_metrics_config_path,
    group_config_path,
    topic_config_path,
)
from headwater.cluster.store.metadata_store import Create, Delete, Operation, Set
from headwater.cluster.topics.deletion import find_topic


class ConfigConflictError(KafkaError):
    """The configuration has another version than the one that the change was made for."""

    code = ErrorCode.INVALID_UPDATE_VERSION


def plan_config_change(
    resource: ConfigResource,
    configs: Mapping[str, str],
    version: int | None,
    image: ClusterImage,
) -> list[Operation]:
    """What sets them, if anything is to be done; without a version, whatever was set before."""
    present = image.config(resource).version
    if version not in (None, present):
        raise ConfigConflictError(
            f"The configuration of {describe(resource)} was changed by somebody else."
        )
    path = _path(resource, image)
    if is_gone(resource, configs):
        return [] if present == NO_CONFIGS else [Delete(path, present)]
    data = encode_configs(configs)
    return [Create(path, data) if present == NO_CONFIGS else Set(path, data, present)]


def is_gone(resource: ConfigResource, configs: Mapping[str, str]) -> bool:
    """Whether nothing remains of a resource that has these settings: it was nothing but them."""
    return not configs and resource.kind in (ResourceKind.CLIENT_METRICS, ResourceKind.GROUP)


def describe(resource: ConfigResource) -> str:
    """The resource in a sentence."""
    match resource.kind:
        case ResourceKind.TOPIC:
            return f"topic {resource.name!r}"
        case ResourceKind.BROKER:
            return f"broker {resource.name}" if resource.name else "all brokers"
        case ResourceKind.CLIENT_METRICS:
            return f"client metrics {resource.name!r}"
        case ResourceKind.GROUP:
            return f"group {resource.name!r}"


def _path(resource: ConfigResource, image: ClusterImage) -> str:
    match resource.kind:
        case ResourceKind.TOPIC:
            return topic_config_path(find_topic(resource.name, image).name)
        case ResourceKind.BROKER:
            return broker_config_path(broker_id_from_text(resource.name) if resource.name else None)
        case ResourceKind.CLIENT_METRICS:
            return client_metrics_config_path(resource.name)
        case ResourceKind.GROUP:
            return group_config_path(resource.name)
