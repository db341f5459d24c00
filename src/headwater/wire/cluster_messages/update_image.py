"""UpdateImage (private API 10000, version 0): the controller tells a broker what has changed.

A message leads from one version of the cluster image to another. A delta names what is different
and goes only on top of the version it begins at; a snapshot names everything, on top of any.
The versions of one controller are numbered; `controller_epoch` tells those of different controllers
apart, and a broker that has heard of a later controller refuses an earlier one. Topics whose nodes
in the metadata store cannot be read are named, lest a snapshot without them pass for their end.

`configs` has the settings of topics and of brokers, `named_configs` those of everything else.
"""

import uuid

from headwater.wire.schema import NEW, ZERO_UUID, Field, Message, Struct, VersionRange

_V0 = (0, 0)


class UpdatedEndpoint(Struct):
    __slots__ = ("host", "listener_name", "port")

    def __init__(self, *, listener_name: str = "", host: str = "", port: int = 0) -> None:
        self.listener_name = listener_name
        self.host = host
        self.port = port

    FIELDS = (
        Field("listener_name", "string", _V0),
        Field("host", "string", _V0),
        Field("port", "int32", _V0),
    )


class UpdatedBroker(Struct):
    __slots__ = (
        "broker_epoch",
        "broker_id",
        "cordoned_log_dirs",
        "endpoints",
        "log_dirs",
        "rack",
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        rack: str | None = None,
        endpoints: list[UpdatedEndpoint] = NEW,
        log_dirs: list[str] = NEW,
        cordoned_log_dirs: list[str] = NEW,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.rack = rack
        self.endpoints = [] if endpoints is NEW else endpoints
        self.log_dirs = [] if log_dirs is NEW else log_dirs
        self.cordoned_log_dirs = [] if cordoned_log_dirs is NEW else cordoned_log_dirs

    FIELDS = (
        Field("broker_id", "int32", _V0),
        Field("broker_epoch", "int64", _V0),
        Field("rack", "string", _V0, nullable=_V0),
        Field("endpoints", UpdatedEndpoint, _V0, array=True),
        # Tagged, so that brokers of earlier releases pass over them.
        Field("log_dirs", "string", _V0, array=True, tag=0, tagged=_V0),
        Field("cordoned_log_dirs", "string", _V0, array=True, tag=1, tagged=_V0),
    )


class UpdatedPartition(Struct):
    __slots__ = (
        "adding",
        "isr",
        "leader",
        "leader_epoch",
        "partition",
        "partition_epoch",
        "removing",
        "replicas",
        "throttle",
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        leader: int = 0,
        leader_epoch: int = 0,
        partition_epoch: int = 0,
        replicas: list[int] = NEW,
        isr: list[int] = NEW,
        adding: list[int] = NEW,
        removing: list[int] = NEW,
        throttle: int = 0,
    ) -> None:
        self.partition = partition
        self.leader = leader
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.replicas = [] if replicas is NEW else replicas
        self.isr = [] if isr is NEW else isr
        self.adding = [] if adding is NEW else adding
        self.removing = [] if removing is NEW else removing
        self.throttle = throttle

    FIELDS = (
        Field("partition", "int32", _V0),
        Field("leader", "int32", _V0),
        Field("leader_epoch", "int32", _V0),
        Field("partition_epoch", "int32", _V0),
        Field("replicas", "int32", _V0, array=True),
        Field("isr", "int32", _V0, array=True),
        # Tagged, so that brokers of earlier releases pass over them, and few partitions have them.
        Field("adding", "int32", _V0, array=True, tag=0, tagged=_V0),
        Field("removing", "int32", _V0, array=True, tag=1, tagged=_V0),
        Field("throttle", "int64", _V0, tag=2, tagged=_V0),
    )


class UpdatedTopic(Struct):
    """A topic that is new, or some of the partitions of one that the broker knows."""

    __slots__ = ("name", "partitions", "topic_id")

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: uuid.UUID = ZERO_UUID,
        partitions: list[UpdatedPartition] = NEW,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = [] if partitions is NEW else partitions

    FIELDS = (
        Field("name", "string", _V0),
        Field("topic_id", "uuid", _V0),
        Field("partitions", UpdatedPartition, _V0, array=True),
    )


class UpdatedConfigEntry(Struct):
    __slots__ = ("name", "value")

    def __init__(self, *, name: str = "", value: str = "") -> None:
        self.name = name
        self.value = value

    FIELDS = (
        Field("name", "string", _V0),
        Field("value", "string", _V0),
    )


class UpdatedConfig(Struct):
    """All that is set for a resource; null entries: it has no configuration any more."""

    __slots__ = ("entries", "kind", "name", "version")

    def __init__(
        self,
        *,
        kind: int = 0,
        name: str = "",
        version: int = -1,
        entries: list[UpdatedConfigEntry] | None = None,
    ) -> None:
        self.kind = kind
        self.name = name
        self.version = version
        self.entries = entries

    FIELDS = (
        Field("kind", "int8", _V0),
        Field("name", "string", _V0),
        Field("version", "int32", _V0),
        Field("entries", UpdatedConfigEntry, _V0, array=True, nullable=_V0),
    )


class UpdateImageRequest(Message):
    __slots__ = (
        "brokers",
        "cluster_id",
        "configs",
        "controller_epoch",
        "controller_id",
        "deleted_topics",
        "from_version",
        "is_snapshot",
        "named_configs",
        "removed_brokers",
        "to_version",
        "topics",
        "unreadable_topics",
    )

    def __init__(
        self,
        *,
        cluster_id: str = "",
        controller_id: int = -1,
        controller_epoch: int = 0,
        is_snapshot: bool = False,
        from_version: int = -1,
        to_version: int = -1,
        brokers: list[UpdatedBroker] = NEW,
        removed_brokers: list[int] = NEW,
        deleted_topics: list[uuid.UUID] = NEW,
        topics: list[UpdatedTopic] = NEW,
        configs: list[UpdatedConfig] = NEW,
        unreadable_topics: list[str] = NEW,
        named_configs: list[UpdatedConfig] = NEW,
    ) -> None:
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.controller_epoch = controller_epoch
        self.is_snapshot = is_snapshot
        self.from_version = from_version
        self.to_version = to_version
        self.brokers = [] if brokers is NEW else brokers
        self.removed_brokers = [] if removed_brokers is NEW else removed_brokers
        self.deleted_topics = [] if deleted_topics is NEW else deleted_topics
        self.topics = [] if topics is NEW else topics
        self.configs = [] if configs is NEW else configs
        self.unreadable_topics = [] if unreadable_topics is NEW else unreadable_topics
        self.named_configs = [] if named_configs is NEW else named_configs

    API_KEY = 10_000
    VERSIONS = VersionRange(0, 0)
    FLEXIBLE_SINCE = 0

    FIELDS = (
        Field("cluster_id", "string", _V0),
        Field("controller_id", "int32", _V0),
        Field("controller_epoch", "int32", _V0),
        Field("is_snapshot", "bool", _V0),
        Field("from_version", "int64", _V0),
        Field("to_version", "int64", _V0),
        Field("brokers", UpdatedBroker, _V0, array=True),
        Field("removed_brokers", "int32", _V0, array=True),
        Field("deleted_topics", "uuid", _V0, array=True),
        Field("topics", UpdatedTopic, _V0, array=True),
        Field("configs", UpdatedConfig, _V0, array=True),
        # Tagged, so that brokers of earlier releases pass over them.
        Field("unreadable_topics", "string", _V0, array=True, tag=0, tagged=_V0),
        Field("named_configs", UpdatedConfig, _V0, array=True, tag=1, tagged=_V0),
    )


class UpdateImageResponse(Message):
    """`version` is what the broker has now: not what was sent, if a delta did not fit."""

    __slots__ = ("error_code", "version")

    def __init__(self, *, error_code: int = 0, version: int = -1) -> None:
        self.error_code = error_code
        self.version = version

    API_KEY = 10_000
    VERSIONS = VersionRange(0, 0)
    FLEXIBLE_SINCE = 0

    FIELDS = (
        Field("error_code", "int16", _V0),
        Field("version", "int64", _V0),
    )
