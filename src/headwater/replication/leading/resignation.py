"""Giving up a place in the ISR, and the lead with it, where this broker's log has failed.

A broker whose disk has failed may still be elected, and is waited for: the controller sees that it
lives, not what it can read. So it asks the controller for an ISR without itself. If that would
leave nobody to lead, the controller says so, and is asked again at the next check of in-sync
replicas. A leader that has been serving does the same by its `in_sync_replicas`.
"""

from __future__ import annotations

import uuid

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.cluster.image.image import PartitionImage
from headwater.replication.leading.isr_state import IsrProposal
from headwater.replication.leading.remote_replica import UNKNOWN_EPOCH
from headwater.replication.partition.environment import PartitionEnvironment
from headwater.wire.messages.alter_partition import ResponsePartitionData


class Resignation:
    """Lasts until the controller's next word on the partition."""

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: uuid.UUID,
        image: PartitionImage,
        environment: PartitionEnvironment,
    ) -> None:
        self._topic_partition = topic_partition
        self._topic_id = topic_id
        self._environment = environment
        others = tuple(each for each in image.isr if each != environment.node_id)
        self._proposal = IsrProposal(
            image.leader_epoch, image.partition_epoch, others, (UNKNOWN_EPOCH,) * len(others)
        )
        self._is_open = bool(others)
        self.ask()

    @property
    def topic_partition(self) -> TopicPartition:
        return self._topic_partition

    @property
    def topic_id(self) -> uuid.UUID:
        return self._topic_id

    def ask(self) -> None:
        if self._is_open:
            self._environment.isr_changes.submit(self, self._proposal)

    def withdraw(self) -> None:
        """The controller has said something else about the partition."""
        self._is_open = False

    def is_waiting_for(self, proposal: IsrProposal) -> bool:
        return self._is_open and proposal is self._proposal

    def accepted(self, proposal: IsrProposal, answer: ResponsePartitionData) -> None:
        self._is_open = False

    def refused(self, proposal: IsrProposal, code: ErrorCode) -> bool:
        self._is_open = code is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        return False
