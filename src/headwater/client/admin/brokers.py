"""Admin operations on brokers: the cluster, its versions and features, and log directories."""

from collections.abc import Collection, Mapping
from itertools import groupby
from typing import NamedTuple

from headwater import __version__
from headwater.base.ids import TopicPartition
from headwater.client.admin.outcomes import Operations, Outcomes, raised_or_returned, settle
from headwater.client.connection.bootstrap import Address
from headwater.client.connection.cluster_metadata import BrokerNode
from headwater.client.errors import refusal
from headwater.client.given_items import given_items, given_partitions
from headwater.net.peer_channel import SOFTWARE_NAME
from headwater.wire.api_keys import ApiKey, VersionRange
from headwater.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from headwater.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headwater.wire.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from headwater.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from headwater.wire.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)


class ClusterDescription(NamedTuple):
    cluster_id: str | None
    controller_id: int
    brokers: tuple[BrokerNode, ...]


class FeatureDescription(NamedTuple):
    """The versions of features by name: that in force, and those that a broker could do."""

    finalized: dict[str, int]
    supported: dict[str, VersionRange]
    #: Grows with every change; -1 where the broker does not tell it.
    epoch: int


class ReplicaSize(NamedTuple):
    """A partition's log in a directory; `is_future` while it is being moved there."""

    size_bytes: int
    offset_lag: int
    is_future: bool


class LogDirectory(NamedTuple):
    """A broker's log directory; the totals are -1 where the broker does not tell them."""

    path: str
    error_code: int
    replicas: dict[TopicPartition, ReplicaSize]
    total_bytes: int
    usable_bytes: int
    #: Whether it takes no new replicas.
    is_cordoned: bool = False


class BrokerOperations(Operations):
    """See `AdminOperations`."""

    async def describe_cluster(self) -> ClusterDescription:
        """The brokers that are up."""

        async def attempt() -> ClusterDescription:
            channel = await self.connection.channel()
            if ApiKey.DESCRIBE_CLUSTER not in channel.versions:
                await self.connection.refresh(())
                metadata = self.connection.metadata
                nodes = tuple(sorted(metadata.brokers.values()))
                return ClusterDescription(metadata.cluster_id, metadata.controller_id, nodes)
            response = await self.connection.ask(DescribeClusterRequest(), DescribeClusterResponse)
            if response.error_code:
                raise refusal(response.error_code, response.error_message, "The cluster")
            brokers = (
                BrokerNode(broker.broker_id, Address(broker.host, broker.port), broker.rack)
                for broker in response.brokers
            )
            return ClusterDescription(
                response.cluster_id, response.controller_id, tuple(sorted(brokers))
            )

        return await self.connection.retrying(attempt, "Describing the cluster")

    async def api_versions(self, broker_id: int | None = None) -> dict[int, VersionRange]:
        """What a broker said it supports when it was connected to, by API key."""
        channel = await self.connection.channel(broker_id)
        return dict(channel.versions)

    async def describe_features(self, broker_id: int | None = None) -> FeatureDescription:
        """The cluster's features, as that broker or any tells them."""

        async def attempt() -> FeatureDescription:
            request = ApiVersionsRequest(
                client_software_name=SOFTWARE_NAME, client_software_version=__version__
            )
            response = await self.connection.ask(request, ApiVersionsResponse, broker_id)
            if response.error_code:
                raise refusal(response.error_code, None, "The cluster's features")
            return FeatureDescription(
                finalized={
                    feature.name: feature.max_version_level
                    for feature in response.finalized_features
                },
                supported={
                    feature.name: VersionRange(feature.min_version, feature.max_version)
                    for feature in response.supported_features
                },
                epoch=response.finalized_features_epoch,
            )

        return await self.connection.retrying(attempt, "Describing features")

    async def describe_log_dirs(
        self,
        broker_ids: Collection[int] | None = None,
        partitions: Collection[TopicPartition] | None = None,
    ) -> Outcomes[int, list[LogDirectory]]:
        """The log directories of brokers, all unless named, with all replicas unless named."""
        topics = None
        if partitions is not None:
            topics = [
                DescribableLogDirTopic(topic=topic, partitions=[tp.partition for tp in group])
                for topic, group in groupby(
                    sorted(given_partitions(partitions)), key=lambda tp: tp.topic
                )
            ]

        async def attempt(pending: list[int]) -> Outcomes[int, list[LogDirectory]]:
            outcomes: Outcomes[int, list[LogDirectory]] = {}
            for broker_id in pending:
                response = await self.connection.ask(
                    DescribeLogDirsRequest(topics=topics), DescribeLogDirsResponse, broker_id
                )
                outcomes[broker_id] = (
                    refusal(response.error_code, None, f"Broker {broker_id}")
                    if response.error_code
                    else [_log_directory(result) for result in response.results]
                )
            return outcomes

        known = self.connection.metadata.brokers
        wanted = list(known) if broker_ids is None else given_items(broker_ids, int)
        return await settle(self.connection, wanted, attempt, "Describing log directories")

    async def unregister_broker(self, broker_id: int) -> None:
        """Have the cluster forget a broker that was stopped for good."""

        async def attempt() -> None:
            response = await self.connection.ask_controller(
                UnregisterBrokerRequest(broker_id=broker_id), UnregisterBrokerResponse
            )
            if response.error_code:
                name = f"Broker {broker_id}"
                raise refusal(response.error_code, response.error_message, name)

        await self.connection.retrying(attempt, "Unregistering a broker")

    async def alter_replica_log_dirs(
        self,
        broker_id: int,
        directories: Mapping[TopicPartition, str],
        *,
        raise_errors: bool = True,
    ) -> Outcomes[TopicPartition, None]:
        """Have a broker move its replicas of these partitions to other directories of its own."""

        async def attempt(pending: list[TopicPartition]) -> Outcomes[TopicPartition, None]:
            by_path: dict[str, list[TopicPartition]] = {}
            for topic_partition in sorted(pending):
                by_path.setdefault(directories[topic_partition], []).append(topic_partition)
            request = AlterReplicaLogDirsRequest(
                dirs=[
                    AlterReplicaLogDir(
                        path=path,
                        topics=[
                            AlterReplicaLogDirTopic(
                                name=topic, partitions=[tp.partition for tp in moved]
                            )
                            for topic, moved in groupby(replicas, key=lambda tp: tp.topic)
                        ],
                    )
                    for path, replicas in by_path.items()
                ]
            )
            response = await self.connection.ask(request, AlterReplicaLogDirsResponse, broker_id)
            outcomes: Outcomes[TopicPartition, None] = {}
            for topic in response.results:
                for result in topic.partitions:
                    key = TopicPartition(topic.topic_name, result.partition_index)
                    outcomes[key] = (
                        refusal(result.error_code, None, str(key)) if result.error_code else None
                    )
            return outcomes

        outcomes = await settle(self.connection, list(directories), attempt, "Moving replicas")
        return raised_or_returned(outcomes, raise_errors)


def _log_directory(result: DescribeLogDirsResult) -> LogDirectory:
    return LogDirectory(
        path=result.log_dir,
        error_code=result.error_code,
        replicas={
            TopicPartition(topic.name, partition.partition_index): ReplicaSize(
                partition.partition_size, partition.offset_lag, partition.is_future_key
            )
            for topic in result.topics
            for partition in topic.partitions
        },
        total_bytes=result.total_bytes,
        usable_bytes=result.usable_bytes,
        is_cordoned=result.is_cordoned,
    )
