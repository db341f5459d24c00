"""A simulated client's way into a cluster: to any broker, or to the leader of one partition.

Which broker that is, metadata say, from whichever broker is asked. Answers may be old: as clients
do, the link keeps to the largest leader epoch that it has heard of, and asks again. A reader may
go to any replica instead (`reads_any_replica`): a leader or a follower, in sync or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.net.peer_channel import PeerChannel, PeerTimeoutError, PeerUnavailableError
from headwater.sim.clients.broker_link import BrokerLink, Unanswered
from headwater.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

Address = tuple[str, int]


class ClusterLink(BrokerLink):
    def __init__(
        self,
        name: str,
        addresses: Sequence[Address],
        random: Random,
        timeout_s: float,
        partition: TopicPartition | None = None,
    ) -> None:
        super().__init__(name, random.choice(addresses), random, timeout_s)
        self._addresses = list(addresses)
        self._partition = partition
        #: Whether whoever has a replica will do, as it does for readers.
        self.reads_any_replica = False
        if partition is not None:
            self.leader_epoch = 0

    async def channel(self) -> PeerChannel:
        if self._channel is None or self._channel.is_closed:
            self.address = self.random.choice(self._addresses)
            if self._partition is not None:
                self.address = await self._find_leader(self._partition)
        return await super().channel()

    async def look_again(self) -> None:
        await self.close()

    async def _find_leader(self, partition: TopicPartition) -> Address:
        try:
            channel = await PeerChannel.connect(
                *self.address, client_id=self.name, timeout_s=self.timeout_s
            )
            try:
                request = MetadataRequest(
                    topics=[MetadataRequestTopic(name=partition.topic)],
                    allow_auto_topic_creation=False,
                )
                answer = await channel.send(request, version=9, timeout_s=self.timeout_s)
            finally:
                await channel.close()
        except (PeerUnavailableError, PeerTimeoutError) as error:
            raise Unanswered(str(error)) from error
        return self._leader_in(answer, partition)

    def _leader_in(self, answer: MetadataResponse, partition: TopicPartition) -> Address:
        brokers = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        for topic in answer.topics:
            for each in topic.partitions:
                if each.partition_index != partition.partition or topic.name != partition.topic:
                    continue
                if each.error_code == ErrorCode.NONE and each.leader_id in brokers:
                    if each.leader_epoch < self.leader_epoch:
                        raise Unanswered(f"{partition} was led in a later epoch")
                    self.leader_epoch = each.leader_epoch
                    if self.reads_any_replica:
                        live = [node_id for node_id in each.replica_nodes if node_id in brokers]
                        return brokers[self.random.choice(live)]
                    return brokers[each.leader_id]
        raise Unanswered(f"nobody leads {partition}")
