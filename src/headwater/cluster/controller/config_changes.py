"""What is written when the configuration of a topic or of brokers changes.

A change replaces all that is set for a resource. Whoever merges single settings into what he read
names the version that he read, and is refused if somebody else was faster; then he reads again.
"""

from __future__ import annotations

from collections.abc import Mapping

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.image.image import NO_CONFIGS, ClusterImage, ConfigResource, ResourceKind
from headwater.cluster.image.rules import broker_id_from_text
from headwater.cluster.node_documents import encode_configs
from headwater.cluster.node_locations import broker_config_path, topic_config_path
from headwater.cluster.store.metadata_store import Create, Operation, Set
from headwater.cluster.topics.deletion import find_topic


class ConfigConflictError(KafkaError):
    """The configuration has another version than the one that the change was made for."""

    code = ErrorCode.INVALID_UPDATE_VERSION


def plan_config_change(
    resource: ConfigResource,
    configs: Mapping[str, str],
    version: int | None,
    image: ClusterImage,
) -> Operation:
    """The operation that sets them; without a version, whatever was set before."""
    present = image.config(resource).version
    if version not in (None, present):
        raise ConfigConflictError(
            f"The configuration of {describe(resource)} was changed by somebody else."
        )
    path = _path(resource, image)
    data = encode_configs(configs)
    return Create(path, data) if present == NO_CONFIGS else Set(path, data, present)


def describe(resource: ConfigResource) -> str:
    """The resource in a sentence."""
    if resource.kind is ResourceKind.TOPIC:
        return f"topic {resource.name!r}"
    return f"broker {resource.name}" if resource.name else "all brokers"


def _path(resource: ConfigResource, image: ClusterImage) -> str:
    if resource.kind is ResourceKind.TOPIC:
        return topic_config_path(find_topic(resource.name, image).name)
    return broker_config_path(broker_id_from_text(resource.name) if resource.name else None)
