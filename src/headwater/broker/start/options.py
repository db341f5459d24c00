"""What the parts of a broker are told when it starts, as its settings say."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from random import Random

from headwater.broker.peers.advertised_addresses import registered_endpoints
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.broker.settings.config_changes import check_stored_configs, check_topic_configs
from headwater.broker.settings.listener_settings import advertised_endpoints
from headwater.broker.topics.policy import SETTING as POLICY_SETTING
from headwater.broker.topics.policy import load_topic_policy
from headwater.cluster.image.image import BrokerInfo
from headwater.cluster.topics.new_topic import ControllerOptions
from headwater.net.endpoint import Endpoint
from headwater.replication.partition.options import (
    AcksAllFlush,
    PartitionOptions,
    ThrottledReplicas,
)
from headwater.storage.directories.log_environment import LogEnvironment
from headwater.storage.disk.files import FileSystem
from headwater.storage.disk.handles import HandleCache
from headwater.storage.log_settings import cordoned_directory_paths, log_directory_paths

#: ZooKeeper looks for dead sessions once a tick.
_SESSION_END_GRACE_S = 3.0


def log_environment(
    settings: BrokerSettings, files: FileSystem, random: Random, handles_max: int
) -> LogEnvironment:
    """What all logs share, with the configuration of each topic as it is at any moment."""
    shared = LogEnvironment.from_settings(settings.values, files, random)
    return replace(
        shared,
        config_of=settings.topic_config,
        handles=HandleCache(files, handles_max),
        cordoned_paths=lambda: cordoned_directory_paths(settings.values),
    )


def broker_info(
    settings: BrokerSettings, node_id: int, endpoints: Sequence[Endpoint]
) -> BrokerInfo:
    """How the broker registers, now that its listeners have their ports."""
    # Who shares a store without ZooKeeper shares a process.
    is_one_machine = not settings.optional_text("zookeeper.connect")
    advertised = registered_endpoints(
        advertised_endpoints(settings.values),
        endpoints,
        None if is_one_machine else socket.gethostname(),
    )
    return BrokerInfo(
        node_id,
        advertised,
        settings.optional_text("broker.rack"),
        log_dirs=log_directory_paths(settings.static),
        cordoned_log_dirs=settings.static.texts("cordoned.log.dirs"),
    )


def controller_options(settings: BrokerSettings) -> ControllerOptions:
    """What it goes by while it is the controller."""
    texts = {name: settings.values.render(name) or "" for name in settings.values.sources}
    return ControllerOptions(
        default_partition_count=settings.integer("num.partitions"),
        default_replication_factor=settings.integer("default.replication.factor"),
        topic_deletion_enabled=settings.boolean("delete.topic.enable"),
        unclean_leader_election_enabled=settings.boolean("unclean.leader.election.enable"),
        min_insync_replicas=settings.integer("min.insync.replicas"),
        validate_topic_configs=partial(check_topic_configs, settings),
        validate_configs=partial(check_stored_configs, settings),
        create_topic_policy=load_topic_policy(settings.optional_text(POLICY_SETTING), texts),
    )


def partition_rules(settings: BrokerSettings, topic: str) -> PartitionOptions:
    """What a partition of the topic goes by, with the settings as they are now."""
    values = settings.topic_values(topic)
    leading, following = (
        ThrottledReplicas.from_texts(
            values.texts(f"{side}.replication.throttled.replicas"), settings.broker_id
        )
        for side in ("leader", "follower")
    )
    return PartitionOptions(
        values.integer("min.insync.replicas"),
        AcksAllFlush(settings.text("acks.all.flush")),
        settings.integer("replica.lag.time.max.ms"),
        leading,
        following,
    )


def old_session_s(settings: BrokerSettings) -> float:
    """How long the session of an earlier life, which nobody ended, may still be alive."""
    if settings.optional_text("zookeeper.connect") is None:
        return 0.0
    session_s = settings.integer("zookeeper.session.timeout.ms") / 1000
    return session_s + _SESSION_END_GRACE_S
