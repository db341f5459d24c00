"""Administering a cluster: topics, configs, offsets, groups, transactions and brokers.

`Admin` is for ordinary code, `AsyncAdmin` for asyncio; both are `AdminOperations`, which work on a
connection that somebody else made.

Operations on several things answer for each of them on its own, with a value or with the error that
the cluster gave: `Outcomes`. Those that change something raise if anything failed, unless they are
told not to; for those that only ask there is `require_all`.

A command needs a part of this only, and should start quickly, so the modules are loaded when a name
of theirs is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater.client.admin.admin import Admin
    from headwater.client.admin.admin_operations import AdminOperations
    from headwater.client.admin.async_admin import AsyncAdmin
    from headwater.client.admin.brokers import (
        BrokerOperations,
        ClusterDescription,
        FeatureDescription,
        LogDirectory,
        ReplicaSize,
    )
    from headwater.client.admin.configs import (
        ConfigChange,
        ConfigEntry,
        ConfigOperation,
        ConfigOperations,
        ConfigResource,
        ConfigSource,
        ConfigSynonym,
        ResourceType,
    )
    from headwater.client.admin.delayed import (
        DelayedListing,
        DelayedMessage,
        DelayedOperations,
        DelayedStats,
    )
    from headwater.client.admin.elections import ElectionOperations, ElectionType
    from headwater.client.admin.group_description import GroupDescription, GroupMember
    from headwater.client.admin.group_offsets import CommittedOffset, GroupOffsetOperations
    from headwater.client.admin.groups import GroupListing, GroupOperations
    from headwater.client.admin.offsets import ListedOffset, OffsetOperations, OffsetTime
    from headwater.client.admin.outcomes import Outcomes, require_all
    from headwater.client.admin.producers import (
        FencedProducer,
        ProducerDescription,
        ProducerOperations,
    )
    from headwater.client.admin.reassignments import (
        PartitionReassignment,
        ReassignmentOperations,
    )
    from headwater.client.admin.topics import CreatedTopic, NewTopic, TopicOperations
    from headwater.client.admin.transactions import (
        OpenTransaction,
        TransactionDescription,
        TransactionListing,
        TransactionOperations,
    )

_MODULES = {
    "Admin": "admin",
    "AdminOperations": "admin_operations",
    "AsyncAdmin": "async_admin",
    "BrokerOperations": "brokers",
    "ClusterDescription": "brokers",
    "CommittedOffset": "group_offsets",
    "ConfigChange": "configs",
    "ConfigEntry": "configs",
    "ConfigOperation": "configs",
    "ConfigOperations": "configs",
    "ConfigResource": "configs",
    "ConfigSource": "configs",
    "ConfigSynonym": "configs",
    "CreatedTopic": "topics",
    "DelayedListing": "delayed",
    "DelayedMessage": "delayed",
    "DelayedOperations": "delayed",
    "DelayedStats": "delayed",
    "ElectionOperations": "elections",
    "ElectionType": "elections",
    "FeatureDescription": "brokers",
    "FencedProducer": "producers",
    "GroupDescription": "group_description",
    "GroupListing": "groups",
    "GroupMember": "group_description",
    "GroupOffsetOperations": "group_offsets",
    "GroupOperations": "groups",
    "ListedOffset": "offsets",
    "LogDirectory": "brokers",
    "NewTopic": "topics",
    "OffsetOperations": "offsets",
    "OffsetTime": "offsets",
    "OpenTransaction": "transactions",
    "Outcomes": "outcomes",
    "PartitionReassignment": "reassignments",
    "ProducerDescription": "producers",
    "ProducerOperations": "producers",
    "ReassignmentOperations": "reassignments",
    "ReplicaSize": "brokers",
    "ResourceType": "configs",
    "TopicOperations": "topics",
    "TransactionDescription": "transactions",
    "TransactionListing": "transactions",
    "TransactionOperations": "transactions",
    "require_all": "outcomes",
}

__all__ = [
    "Admin",
    "AdminOperations",
    "AsyncAdmin",
    "BrokerOperations",
    "ClusterDescription",
    "CommittedOffset",
    "ConfigChange",
    "ConfigEntry",
    "ConfigOperation",
    "ConfigOperations",
    "ConfigResource",
    "ConfigSource",
    "ConfigSynonym",
    "CreatedTopic",
    "DelayedListing",
    "DelayedMessage",
    "DelayedOperations",
    "DelayedStats",
    "ElectionOperations",
    "ElectionType",
    "FeatureDescription",
    "FencedProducer",
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "GroupOffsetOperations",
    "GroupOperations",
    "ListedOffset",
    "LogDirectory",
    "NewTopic",
    "OffsetOperations",
    "OffsetTime",
    "OpenTransaction",
    "Outcomes",
    "PartitionReassignment",
    "ProducerDescription",
    "ProducerOperations",
    "ReassignmentOperations",
    "ReplicaSize",
    "ResourceType",
    "TopicOperations",
    "TransactionDescription",
    "TransactionListing",
    "TransactionOperations",
    "require_all",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
