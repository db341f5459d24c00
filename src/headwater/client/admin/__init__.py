"""Administering a cluster: topics, configs, offsets and brokers, in one class `Admin`.

Operations on several things answer for each of them on its own, with a value or with the error that
the cluster gave: `Outcomes`. `require_all` is for callers who want all or an exception.
"""

from headwater.client.admin.admin import Admin
from headwater.client.admin.brokers import (
    ClusterDescription,
    LogDirectory,
    ProducerDescription,
    ReplicaSize,
)
from headwater.client.admin.configs import (
    ConfigChange,
    ConfigEntry,
    ConfigOperation,
    ConfigResource,
    ConfigSource,
    ConfigSynonym,
    ResourceType,
)
from headwater.client.admin.offsets import ListedOffset, OffsetTime
from headwater.client.admin.outcomes import Outcomes, require_all
from headwater.client.admin.topics import CreatedTopic, NewTopic

__all__ = [
    "Admin",
    "ClusterDescription",
    "ConfigChange",
    "ConfigEntry",
    "ConfigOperation",
    "ConfigResource",
    "ConfigSource",
    "ConfigSynonym",
    "CreatedTopic",
    "ListedOffset",
    "LogDirectory",
    "NewTopic",
    "OffsetTime",
    "Outcomes",
    "ProducerDescription",
    "ReplicaSize",
    "ResourceType",
    "require_all",
]
