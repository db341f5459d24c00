"""Who counts as in sync with a leader, and how that changes: by proposals to the controller.

A follower that has not caught up for `replica.lag.time.max.ms` is to leave the ISR, and at once if
its broker is gone; nobody else takes it out. One outside that has reached the high watermark, and
all that was there when this leader's epoch began, is to join. Both are proposals, and until the
controller answers the more careful of the two sets holds (`isr_state`).

A leader that becomes the only one in sync has records that no other broker needs to have any more.
So it first makes durable all that was acknowledged, then it proposes to be alone, and from then on
it acknowledges only what is on its disk, whatever becomes of the proposal.

A partition that moves to other brokers may be left with one replica in sync, when the others leave.
That one leads by then, and proposes to be alone before they go, in the same way: so what was
acknowledged is on its disk when the copies of the others are deleted.

A leader whose log fails resigns: it proposes an ISR without itself, which the controller answers by
electing another leader.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.cluster.reassignment.steps import leaving
from headwater.replication.leading.isr_state import IsrProposal, IsrState
from headwater.replication.leading.remote_replica import UNKNOWN_EPOCH, RemoteReplica
from headwater.replication.partition.environment import PartitionEnvironment
from headwater.wire.messages.alter_partition import ResponsePartitionData

if TYPE_CHECKING:
    from headwater.replication.partition.partition import Partition

#: How long a proposal that was turned down is not made again.
_REFUSAL_PAUSE_MS: Final = 1_000
_RESIGNATION_PAUSE_MS: Final = 10_000

#: The controller has done nothing: what was before holds.
_NOT_ATTEMPTED: Final = frozenset(
    {
        ErrorCode.INELIGIBLE_REPLICA,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
    }
)
#: The controller knows better: its next image will tell, and nothing else can. Until then even a
#: proposal that it has taken before, with an answer that was lost, may be what holds.
_OUTDATED: Final = frozenset(
    {
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.NEW_LEADER_ELECTED,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)


class InSyncReplicas:
    """Those of one partition that this broker leads; its owner is the `Leadership`."""

    __slots__ = (
        "_environment",
        "_is_shrinking_when_durable",
        "_outgoing",
        "_partition",
        "_paused_until_ms",
        "_remotes",
        "state",
    )

    def __init__(self, partition: Partition, environment: PartitionEnvironment) -> None:
        self._partition = partition
        self._environment = environment
        #: Changed here alone; others read it.
        self.state = IsrState()
        self._remotes: Mapping[int, RemoteReplica] = {}
        #: Nobody is to leave before this, after such a proposal was turned down.
        self._paused_until_ms = 0.0
        self._is_shrinking_when_durable = False
        #: Members that leave because the partition moves, and that leave this broker alone.
        self._outgoing: frozenset[int] = frozenset()

    @property
    def topic_partition(self) -> TopicPartition:
        return self._partition.topic_partition

    @property
    def topic_id(self) -> uuid.UUID:
        return self._partition.topic_id

    # -- the controller's word -------------------------------------------------------------------

    def commit(
        self, isr: tuple[int, ...], partition_epoch: int, remotes: Mapping[int, RemoteReplica]
    ) -> None:
        """The controller says who of the replicas is in sync."""
        partition = self._partition
        before, proposal = self.state.isr, self.state.proposal
        if proposal is not None and sorted(proposal.isr) == sorted(isr):
            self._environment.isr_changes.changed(self.topic_partition, before, isr)
        self._remotes = remotes
        self.state.commit(isr, partition_epoch)
        self._paused_until_ms = 0.0
        for remote in remotes.values():
            # Whoever the controller has put out is not waited for, unless it goes on fetching.
            remote.is_joining = False
        log, alone = partition.log, (self._environment.node_id,)
        if (
            isr == alone != before
            and partition.fsyncs_when_alone
            and log.flushed_offset < log.record_end_offset
        ):
            # Others had it; from now on this disk alone answers for it.
            partition.request_fsync(log.log_end_offset)
        if log.failure is not None:
            self.resign()
        else:
            self.find_fallen_behind(self._environment.clock.monotonic_ms())

    # -- leaving ---------------------------------------------------------------------------------

    def check(self) -> None:
        """Once in a while: find followers that do not keep up."""
        pending = self.state.proposal
        if self._partition.log.failure is not None:
            self.resign()
        elif pending is not None:
            # It may have been answered by an image that is still on its way. Asking again is safe.
            self._environment.isr_changes.submit(self, pending)
        else:
            now_ms = self._environment.clock.monotonic_ms()
            self.find_fallen_behind(now_ms)
            self.stop_waiting(now_ms)

    def find_fallen_behind(self, now_ms: float) -> None:
        """Propose to go on without those that are gone, do not keep up, or move away."""
        self._outgoing = self._find_outgoing()
        if self.state.proposal is not None or now_ms < self._paused_until_ms:
            return
        end_offset, lag_max_ms = self._partition.log.log_end_offset, self._lag_max_ms
        members = [self._remotes[each] for each in self.state.isr if each in self._remotes]
        leaving = {
            each.broker_id
            for each in members
            if each.broker_id not in self._environment.brokers
            or not each.is_caught_up(end_offset, now_ms, lag_max_ms)
            or each.broker_id in self._outgoing
        }
        if leaving:
            self._shrink(leaving)

    def _find_outgoing(self) -> frozenset[int]:
        told = self._partition.told
        if not told.is_moving:
            return frozenset()
        isr = self.state.isr
        outgoing = leaving(
            told._replace(isr=isr),
            self._environment.brokers,
            self._partition.options.min_insync_replicas,
        )
        is_left_alone = [each for each in isr if each not in outgoing] == [
            self._environment.node_id
        ]
        return outgoing if is_left_alone else frozenset()

    def _shrink(self, lagging: set[int]) -> None:
        partition = self._partition
        isr = tuple(each for each in self.state.isr if each not in lagging)
        if len(isr) == 1 and partition.fsyncs_when_alone and not self._is_committed_part_durable:
            self._is_shrinking_when_durable = True
            partition.request_fsync(partition.log.log_end_offset)
            return
        self._propose(isr)

    @property
    def _is_committed_part_durable(self) -> bool:
        """Whether all that may have been acknowledged, also by earlier leaders, is on this disk."""
        log = self._partition.log
        # A new leader may have to learn yet how far the one before had come.
        end_offset = max(log.high_watermark, self._partition.leader_epoch_start_offset)
        return log.flushed_offset >= min(end_offset, log.record_end_offset)

    def log_is_durable(self) -> None:
        """More of the log is on disk, or it has failed."""
        if self._partition.log.failure is not None:
            self.resign()
        elif self._is_shrinking_when_durable:
            self._is_shrinking_when_durable = False
            self.find_fallen_behind(self._environment.clock.monotonic_ms())

    def resign(self) -> None:
        """The log has failed: let the controller elect another of those in sync."""
        others = tuple(each for each in self.state.isr if each != self._environment.node_id)
        now_ms = self._environment.clock.monotonic_ms()
        if others and self.state.proposal is None and now_ms >= self._paused_until_ms:
            self._propose(others)

    # -- joining ---------------------------------------------------------------------------------

    def follower_fetched(self, remote: RemoteReplica, now_ms: float) -> None:
        """If it is out of sync, it may be time to take it in."""
        if remote.broker_id in self.state.isr or remote.broker_id in self._outgoing:
            return
        remote.is_joining = self._may_join_soon(remote, now_ms)
        partition = self._partition
        if (
            self.state.proposal is None
            and remote.log_end_offset >= partition.log.high_watermark
            and remote.log_end_offset >= partition.leader_epoch_start_offset
            and now_ms >= remote.paused_until_ms
            and self._is_eligible(remote)
            and partition.log.failure is None
        ):
            self._propose((*self.state.isr, remote.broker_id))

    def stop_waiting(self, now_ms: float) -> None:
        """Nobody waits for one to join that does not keep up, or does not live, any more."""
        for remote in self._remotes.values():
            if remote.is_joining:
                remote.is_joining = self._may_join_soon(remote, now_ms)
        self._partition.advance_high_watermark()

    def _may_join_soon(self, remote: RemoteReplica, now_ms: float) -> bool:
        return (
            now_ms >= remote.paused_until_ms
            and self._is_eligible(remote)
            and remote.is_caught_up(self._partition.log.log_end_offset, now_ms, self._lag_max_ms)
        )

    def _is_eligible(self, remote: RemoteReplica) -> bool:
        """Whether the life of the broker that fetches is the one that the cluster knows."""
        broker = self._environment.brokers.get(remote.broker_id)
        return broker is not None and remote.broker_epoch in (UNKNOWN_EPOCH, broker.broker_epoch)

    @property
    def _lag_max_ms(self) -> int:
        return self._partition.options.replica_lag_time_max_ms

    # -- proposals -------------------------------------------------------------------------------

    def _propose(self, isr: tuple[int, ...]) -> None:
        partition = self._partition
        proposal = IsrProposal(
            partition.leader_epoch,
            self.state.partition_epoch,
            isr,
            tuple(self._broker_epoch(each) for each in isr),
        )
        self.state.propose(proposal)
        self._environment.isr_changes.submit(self, proposal)

    def _broker_epoch(self, broker_id: int) -> int:
        if broker_id == self._environment.node_id:
            own = self._environment.brokers.get(broker_id)
            return UNKNOWN_EPOCH if own is None else own.broker_epoch
        return self._remotes[broker_id].broker_epoch

    def is_waiting_for(self, proposal: IsrProposal) -> bool:
        leadership = self._partition.leadership
        return self.state.proposal is proposal and (
            leadership is not None and leadership.in_sync is self
        )

    def accepted(self, proposal: IsrProposal, answer: ResponsePartitionData) -> None:
        """The controller has written it, or found that it holds already."""
        partition = self._partition
        if (
            answer.leader_epoch != partition.leader_epoch
            or answer.partition_epoch < self.state.partition_epoch
        ):
            return  # An image with another state is on its way.
        self.commit(tuple(answer.isr), answer.partition_epoch, self._remotes)
        partition.advance_high_watermark()
        self._environment.events.on_in_sync(partition)

    def refused(self, proposal: IsrProposal, code: ErrorCode) -> bool:
        """The controller did not agree; returns whether to ask again."""
        if code in _NOT_ATTEMPTED:
            self._pause(proposal)
            self.state.withdraw()
            self._partition.advance_high_watermark()
            return False
        return code not in _OUTDATED

    def _pause(self, proposal: IsrProposal) -> None:
        """Leave alone for a while what was turned down."""
        now_ms = self._environment.clock.monotonic_ms()
        joining = [each for each in proposal.isr if each not in self.state.isr]
        for broker_id in joining:
            remote = self._remotes[broker_id]
            remote.paused_until_ms = now_ms + _REFUSAL_PAUSE_MS
            remote.is_joining = False
        if self._environment.node_id not in proposal.isr:
            self._paused_until_ms = now_ms + _RESIGNATION_PAUSE_MS
        elif not joining:
            self._paused_until_ms = now_ms + _REFUSAL_PAUSE_MS
