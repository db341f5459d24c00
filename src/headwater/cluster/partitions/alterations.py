"""Decides on the ISR changes that leaders ask for by AlterPartition.

A leader sees who keeps up with it and who does not; the controller sees to it that only the present
leader, in its present life, is listened to, and that nobody becomes a member of an ISR who is gone
meanwhile. The leader names what it builds on: its own broker epoch, the leader epoch, the partition
epoch, and of each member the broker epoch that fetched from it. Whatever of it is not so any more
refuses the change, with Kafka's error codes; the leader will have heard by the time it asks again.

A leader whose log has failed asks for an ISR without itself: it resigns. Then another member of
that ISR is elected, and the leader hears NEW_LEADER_ELECTED. A follower whose log has failed may
ask for the same, so that nobody waits for it; but to be left alone is for the leader to ask.

Several requests are planned as one change, one after the other, each on top of those before it.
"""

from __future__ import annotations

from collections.abc import Collection

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.cluster.image.image import ClusterImage, PartitionImage, TopicImage
from headwater.cluster.partitions.elections import OfflinePartition, in_sync_with
from headwater.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    RequestPartitionData,
    ResponsePartitionData,
    ResponseTopicData,
)


class PartitionAlterations:
    """What is asked at one time: plan every request, carry out `states`, then answer them."""

    def __init__(self, image: ClusterImage, shutting_down: Collection[int]) -> None:
        self._image = image
        self._shutting_down = shutting_down
        #: What is to be written.
        self.states: dict[TopicPartition, PartitionImage] = {}

    def plan(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """The answer that the request gets if the states can be written."""
        broker = self._image.brokers.get(request.broker_id)
        if broker is None or request.broker_epoch != broker.broker_epoch:
            return AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        topics = []
        for asked in request.topics:
            topic = self._image.topic_by_id(asked.topic_id)
            answers = [
                self._plan_one(request.broker_id, topic, partition)
                for partition in asked.partitions
            ]
            topics.append(ResponseTopicData(topic_id=asked.topic_id, partitions=answers))
        return AlterPartitionResponse(topics=topics)

    def _plan_one(
        self, broker_id: int, topic: TopicImage | None, asked: RequestPartitionData
    ) -> ResponsePartitionData:
        number = asked.partition_index
        if topic is None:
            return _refusal(number, ErrorCode.UNKNOWN_TOPIC_ID)
        if not 0 <= number < len(topic.partitions):
            return _refusal(number, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        name = TopicPartition(topic.name, number)
        partition = self.states.get(name, topic.partitions[number])
        refusal = self._refusal_code(broker_id, partition, asked)
        if refusal is not None:
            return _refusal(number, refusal)
        code = ErrorCode.NONE
        isr = _isr(asked)
        if set(isr) != set(partition.isr):
            if name in self.states:
                # One change of a partition is one version of its node.
                return _refusal(number, ErrorCode.INVALID_UPDATE_VERSION)
            changed: PartitionImage | None = in_sync_with(partition, isr)
            if partition.leader not in isr:
                code = ErrorCode.NEW_LEADER_ELECTED
                changed = self._without_leader(partition, isr)
            if changed is None:
                return _refusal(number, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
            partition = self.states[name] = changed
        return ResponsePartitionData(
            partition_index=number,
            error_code=code,
            leader_id=partition.leader,
            leader_epoch=partition.leader_epoch,
            isr=list(partition.isr),
            partition_epoch=partition.partition_epoch,
        )

    def _refusal_code(
        self, broker_id: int, partition: PartitionImage, asked: RequestPartitionData
    ) -> ErrorCode | None:
        if (
            asked.leader_epoch > partition.leader_epoch
            or asked.partition_epoch > partition.partition_epoch
        ):
            # The leader has heard from a controller that knows more than this one.
            return ErrorCode.NOT_CONTROLLER
        if asked.leader_epoch < partition.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        isr = _isr(asked)
        is_leaving = broker_id in partition.isr and set(isr) == set(partition.isr) - {broker_id}
        if broker_id != partition.leader and not is_leaving:
            return ErrorCode.INVALID_REQUEST
        if asked.partition_epoch < partition.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        if broker_id != partition.leader and len(isr) < 2:
            return ErrorCode.OPERATION_NOT_ATTEMPTED
        if len(set(isr)) < len(isr) or not set(partition.replicas).issuperset(isr):
            return ErrorCode.INVALID_REQUEST
        if partition.leader not in isr and not set(partition.isr).issuperset(isr):
            # Whoever resigns brings nobody in.
            return ErrorCode.INVALID_REQUEST
        if any(
            not self._may_join(member.broker_id, member.broker_epoch)
            for member in asked.new_isr_with_epochs
            if member.broker_id not in partition.isr
        ):
            return ErrorCode.INELIGIBLE_REPLICA
        return None

    def _without_leader(
        self, partition: PartitionImage, isr: tuple[int, ...]
    ) -> PartitionImage | None:
        """The partition after its leader has resigned; None if nobody can take over."""
        electable = self._image.brokers.keys() - self._shutting_down - {partition.leader}
        elected = OfflinePartition().elect(partition._replace(isr=isr), electable)
        return None if elected is None else elected._replace(isr=isr)

    def _may_join(self, broker_id: int, broker_epoch: int) -> bool:
        broker = self._image.brokers.get(broker_id)
        return (
            broker is not None
            and broker_epoch == broker.broker_epoch
            and broker_id not in self._shutting_down
        )


def _isr(asked: RequestPartitionData) -> tuple[int, ...]:
    return tuple(member.broker_id for member in asked.new_isr_with_epochs)


def _refusal(number: int, code: ErrorCode) -> ResponsePartitionData:
    return ResponsePartitionData(partition_index=number, error_code=code)
