"""What all partitions of a broker share: its clock, whom they tell things, and whom they ask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from headwater.base.background_tasks import BackgroundTasks
from headwater.base.clocks import Clock
from headwater.base.ids import TopicPartition
from headwater.base.threads import RunInThread
from headwater.cluster.image.image import BrokerInfo
from headwater.replication.partition.events import PartitionEvents
from headwater.replication.partition.record_inspections import RecordInspections
from headwater.replication.partition.write_failures import WriteFailures
from headwater.replication.throttling.throttles import ReplicationThrottles

if TYPE_CHECKING:
    from headwater.replication.leading.isr_changes import IsrOwner
    from headwater.replication.leading.isr_state import IsrProposal


class IsrProposals(Protocol):
    """Where leaders propose other in-sync replicas: see `isr_changes`."""

    def submit(self, owner: IsrOwner, proposal: IsrProposal) -> None:
        """Ask the controller for it; the owner hears the answer."""
        ...

    def changed(
        self, partition: TopicPartition, before: Iterable[int], after: Iterable[int]
    ) -> None:
        """An ISR has changed by the wish of its leader."""
        ...


@dataclass(slots=True)
class PartitionEnvironment:
    node_id: int
    events: PartitionEvents
    clock: Clock
    run_in_thread: RunInThread
    isr_changes: IsrProposals
    tasks: BackgroundTasks
    write_failures: WriteFailures = field(default_factory=WriteFailures)
    throttles: ReplicationThrottles = field(default_factory=ReplicationThrottles.unlimited)
    #: The live brokers, as the latest image has them.
    brokers: Mapping[int, BrokerInfo] = field(default_factory=dict)
    #: A thread for what takes much memory, if there is one for that alone.
    run_in_one_thread: RunInThread | None = None
    inspections: RecordInspections = field(init=False)

    def __post_init__(self) -> None:
        self.inspections = RecordInspections(
            self.run_in_thread, self.run_in_one_thread or self.run_in_thread
        )
