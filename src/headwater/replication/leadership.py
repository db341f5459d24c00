"""The leader's side of a partition with followers: how far each is, and who counts as in sync.

    high watermark = the smallest LEO of the leader and of all replicas of the maximal ISR

A follower reports its LEO with every fetch. One that has not caught up for
`replica.lag.time.max.ms` is to leave the ISR; one outside that has reached the high watermark, and
all that was there when this leader's epoch began, is to join. Both are proposals to the controller,
and until it answers the more careful of the two sets holds (`isr_state`). While a follower outside
is about to join, the high watermark waits for it: otherwise a leader that is alone would always be
a little ahead, and nobody could ever join under load. While fewer are in sync than
`min.insync.replicas` asks for, the high watermark stands still.

A leader that becomes the only one in sync has records that no other broker needs to have any more.
So the controller never leaves it alone; it does that itself, at once when the others are not alive.
First it makes durable all that was acknowledged, then it proposes to be alone, and from then on it
acknowledges only what is on its disk, whatever becomes of the proposal.

A leader whose log fails resigns: it proposes an ISR without itself, which the controller answers by
electing another leader.
"""

from __future__ import annotations

import logging
import uuid
from typing import TYPE_CHECKING, Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.cluster.image import PartitionImage
from headwater.replication.isr_state import IsrProposal, IsrState
from headwater.replication.partition_parts import PartitionParts
from headwater.replication.replica import UNKNOWN_EPOCH, FetchClock, RemoteReplica
from headwater.wire.messages.alter_partition import ResponsePartitionData

if TYPE_CHECKING:
    from headwater.replication.partition import Partition

_logger = logging.getLogger(__name__)

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


class Leadership:
    """Exists while this broker leads the partition and others have replicas of it."""

    def __init__(self, partition: Partition, parts: PartitionParts) -> None:
        self._partition = partition
        self._parts = parts
        self._in_sync = IsrState(())
        self._remotes: dict[int, RemoteReplica] = {}
        #: Nobody is to leave before this, after such a proposal was turned down.
        self._paused_until_ms = 0.0
        self._is_shrinking_when_durable = False

    @property
    def topic_partition(self) -> TopicPartition:
        return self._partition.topic_partition

    @property
    def topic_id(self) -> uuid.UUID:
        return self._partition.topic_id

    @property
    def proposal(self) -> IsrProposal | None:
        """The change that the controller has not answered yet."""
        return self._in_sync.proposal

    def remote(self, broker_id: int) -> RemoteReplica | None:
        """What is known of a follower."""
        return self._remotes.get(broker_id)

    # -- the controller's word -------------------------------------------------------------------

    def follow(self, image: PartitionImage, *, is_new_epoch: bool) -> None:
        """The controller says who has replicas and who of them is in sync."""
        now_ms = self._parts.clock.monotonic_ms()
        remotes: dict[int, RemoteReplica] = {}
        for broker_id in image.replicas:
            if broker_id == self._parts.node_id:
                continue
            remote = self._remotes.get(broker_id)
            if remote is None or is_new_epoch:
                remote = remote or RemoteReplica(broker_id)
                remote.begin_epoch(
                    now_ms, self._partition.log.log_end_offset, is_in_sync=broker_id in image.isr
                )
            remotes[broker_id] = remote
        self._remotes = remotes
        self._commit(image.isr, now_ms)

    def _commit(self, isr: tuple[int, ...], now_ms: float) -> None:
        partition = self._partition
        before, proposal = self._in_sync.committed, self._in_sync.proposal
        was_alone = before == (self._parts.node_id,)
        if proposal is not None and sorted(proposal.isr) == sorted(isr):
            self._parts.isr_changes.count(before, isr)
        self._in_sync.commit(isr)
        self._paused_until_ms = 0.0
        partition.isr = isr
        self._note_alone()
        for remote in self._remotes.values():
            # Whoever the controller has put out is not waited for, unless it goes on fetching.
            remote.is_joining = False
        log = partition.log
        if (
            isr == (self._parts.node_id,)
            and not was_alone
            and partition.fsyncs_when_alone
            and log.flushed_offset < log.record_end_offset
        ):
            # Others had it; from now on this disk alone answers for it.
            partition.request_fsync(log.log_end_offset)
        if log.failure is not None:
            self.resign()
        else:
            self._find_fallen_behind(now_ms)

    def _note_alone(self) -> None:
        proposal = self._in_sync.proposal
        self._partition.is_alone = len(self._in_sync.committed) <= 1 or (
            proposal is not None and len(proposal.isr) <= 1
        )

    def brokers_changed(self) -> None:
        """Other brokers live than before: nobody waits for one that is gone."""
        now_ms = self._parts.clock.monotonic_ms()
        self._find_fallen_behind(now_ms)
        self._stop_waiting(now_ms)
        log_start_offset = self._partition.log.log_start_offset
        if any(each.log_start_offset < log_start_offset for each in self._remotes.values()):
            # Deletions may have waited for one that is gone.
            self._parts.events.on_log_start(self._partition)

    # -- progress --------------------------------------------------------------------------------

    def check_follower(self, replica_id: int, broker_epoch: int, leader_epoch: int) -> None:
        """Raise unless the replica is one of this partition's, and this its latest life."""
        remote = self._remotes.get(replica_id)
        if remote is None:
            raise unknown_follower(self.topic_partition, replica_id, leader_epoch)
        remote.check_broker_epoch(broker_epoch)

    def follower_fetched(
        self,
        replica_id: int,
        broker_epoch: int,
        fetch_offset: int,
        log_start_offset: int,
        clock: FetchClock | None = None,
    ) -> None:
        """A follower asks for what lies behind `fetch_offset`, so it has all in front of it."""
        remote = self._remotes[replica_id]
        log_end_offset = self._partition.log.log_end_offset
        has_moved = fetch_offset != remote.log_end_offset
        start_has_moved = log_start_offset != remote.log_start_offset
        now_ms = self._parts.clock.monotonic_ms()
        remote.fetched(fetch_offset, log_start_offset, broker_epoch, log_end_offset, now_ms, clock)
        if replica_id not in self._in_sync.committed:
            remote.is_joining = self._may_join_soon(remote, now_ms)
            self._consider_joining(remote, now_ms)
        if has_moved:
            self.advance_high_watermark()
        if start_has_moved:
            self._parts.events.on_log_start(self._partition)

    def follower_left(self, replica_id: int, clock: FetchClock | None = None) -> None:
        """A follower's session does not fetch this partition any more, or not successfully."""
        remote = self._remotes.get(replica_id)
        if remote is not None and (clock is None or remote.clock is clock):
            remote.left_session()

    def advance_high_watermark(self) -> None:
        """Raise it to what all have, if that is more than before."""
        partition = self._partition
        log = partition.log
        if len(partition.isr) < partition.min_insync_replicas:
            return
        offset = log.log_end_offset
        maximal = self._in_sync.maximal
        for remote in self._remotes.values():
            if remote.log_end_offset < offset and (
                remote.broker_id in maximal or remote.is_joining
            ):
                offset = remote.log_end_offset
        if offset > log.high_watermark:
            log.advance_high_watermark(offset)
            self._parts.events.on_high_watermark(partition)

    @property
    def low_watermark(self) -> int:
        """The smallest log start of the live replicas; -1 while one has not told."""
        brokers = self._parts.brokers
        starts = [self._partition.log.log_start_offset]
        starts += [
            each.log_start_offset for each in self._remotes.values() if each.broker_id in brokers
        ]
        return min(starts)

    # -- in and out of sync ----------------------------------------------------------------------

    def check_isr(self) -> None:
        """Once in a while: find followers that do not keep up."""
        now_ms = self._parts.clock.monotonic_ms()
        partition = self._partition
        if partition.log.failure is not None:
            self.resign()
            return
        pending = self._in_sync.proposal
        if pending is not None:
            # It may have been answered by an image that is still on its way. Asking again is safe.
            self._parts.isr_changes.submit(self, pending)
            return
        self._find_fallen_behind(now_ms)
        self._stop_waiting(now_ms)

    def _find_fallen_behind(self, now_ms: float) -> None:
        """Propose to go on without those that do not keep up, or without all if none is alive."""
        if self._in_sync.proposal is not None or now_ms < self._paused_until_ms:
            return
        end_offset, lag_max_ms = self._partition.log.log_end_offset, self._lag_max_ms
        members = [self._remotes[each] for each in self._in_sync.committed if each in self._remotes]
        if any(each.broker_id in self._parts.brokers for each in members):
            members = [
                each for each in members if not each.is_caught_up(end_offset, now_ms, lag_max_ms)
            ]
        if members:
            self._shrink({each.broker_id for each in members})

    def _shrink(self, lagging: set[int]) -> None:
        partition = self._partition
        isr = tuple(each for each in self._in_sync.committed if each not in lagging)
        if len(isr) == 1 and partition.fsyncs_when_alone and not self._is_committed_part_durable:
            self._is_shrinking_when_durable = True
            partition.request_fsync(partition.log.log_end_offset)
            return
        _logger.info(
            "%s: %s fell behind; %s would be in sync",
            self.topic_partition,
            sorted(lagging),
            list(isr),
        )
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
            self._find_fallen_behind(self._parts.clock.monotonic_ms())

    def _may_join_soon(self, remote: RemoteReplica, now_ms: float) -> bool:
        return (
            now_ms >= remote.paused_until_ms
            and self._is_eligible(remote)
            and remote.is_caught_up(self._partition.log.log_end_offset, now_ms, self._lag_max_ms)
        )

    def _stop_waiting(self, now_ms: float) -> None:
        """Nobody waits for one to join that does not keep up, or does not live, any more."""
        for remote in self._remotes.values():
            if remote.is_joining:
                remote.is_joining = self._may_join_soon(remote, now_ms)
        self.advance_high_watermark()

    def _is_eligible(self, remote: RemoteReplica) -> bool:
        """Whether the life of the broker that fetches is the one that the cluster knows."""
        broker = self._parts.brokers.get(remote.broker_id)
        return broker is not None and remote.broker_epoch in (UNKNOWN_EPOCH, broker.broker_epoch)

    def _consider_joining(self, remote: RemoteReplica, now_ms: float) -> None:
        partition = self._partition
        if (
            self._in_sync.proposal is None
            and remote.log_end_offset >= partition.log.high_watermark
            and remote.log_end_offset >= partition.leader_epoch_start_offset
            and now_ms >= remote.paused_until_ms
            and self._is_eligible(remote)
            and partition.log.failure is None
        ):
            isr = (*self._in_sync.committed, remote.broker_id)
            _logger.info(
                "%s: %d has caught up; %s would be in sync",
                self.topic_partition,
                remote.broker_id,
                list(isr),
            )
            self._propose(isr)

    def resign(self) -> None:
        """The log has failed: let the controller elect another of those in sync."""
        others = tuple(each for each in self._in_sync.committed if each != self._parts.node_id)
        now_ms = self._parts.clock.monotonic_ms()
        if others and self._in_sync.proposal is None and now_ms >= self._paused_until_ms:
            self._propose(others)

    @property
    def _lag_max_ms(self) -> int:
        return self._partition.rules.replica_lag_time_max_ms

    # -- proposals -------------------------------------------------------------------------------

    def _propose(self, isr: tuple[int, ...]) -> None:
        partition = self._partition
        proposal = IsrProposal(
            partition.leader_epoch,
            partition.partition_epoch,
            isr,
            tuple(self._broker_epoch(each) for each in isr),
        )
        self._in_sync.propose(proposal)
        self._note_alone()
        self._parts.isr_changes.submit(self, proposal)

    def _broker_epoch(self, broker_id: int) -> int:
        if broker_id == self._parts.node_id:
            own = self._parts.brokers.get(broker_id)
            return UNKNOWN_EPOCH if own is None else own.broker_epoch
        return self._remotes[broker_id].broker_epoch

    def is_waiting_for(self, proposal: IsrProposal) -> bool:
        return self._in_sync.proposal is proposal and self._partition.leadership is self

    def accepted(self, proposal: IsrProposal, answer: ResponsePartitionData) -> None:
        """The controller has written it, or found that it holds already."""
        partition = self._partition
        if (
            answer.leader_epoch != partition.leader_epoch
            or answer.partition_epoch < partition.partition_epoch
        ):
            return  # An image with another state is on its way.
        partition.partition_epoch = answer.partition_epoch
        self._commit(tuple(answer.isr), self._parts.clock.monotonic_ms())
        self.advance_high_watermark()
        self._parts.events.on_in_sync(partition)

    def refused(self, proposal: IsrProposal, code: ErrorCode) -> bool:
        """The controller did not agree; returns whether to ask again."""
        if code in _NOT_ATTEMPTED:
            self._pause(proposal)
            self._in_sync.withdraw()
            self._note_alone()
            self.advance_high_watermark()
            return False
        return code not in _OUTDATED

    def _pause(self, proposal: IsrProposal) -> None:
        """Leave alone for a while what was turned down."""
        now_ms = self._parts.clock.monotonic_ms()
        joining = [each for each in proposal.isr if each not in self._in_sync.committed]
        for broker_id in joining:
            remote = self._remotes[broker_id]
            remote.paused_until_ms = now_ms + _REFUSAL_PAUSE_MS
            remote.is_joining = False
        if self._parts.node_id not in proposal.isr:
            self._paused_until_ms = now_ms + _RESIGNATION_PAUSE_MS
        elif not joining:
            self._paused_until_ms = now_ms + _REFUSAL_PAUSE_MS


def unknown_follower(partition: TopicPartition, replica_id: int, leader_epoch: int) -> KafkaError:
    """What a broker is told that fetches a partition without being known to have a replica."""
    # With a leader epoch that fits, it is ahead of what this broker has heard.
    has_epoch = leader_epoch >= 0
    return KafkaError(
        ErrorCode.UNKNOWN_LEADER_EPOCH if has_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER,
        f"Broker {replica_id} is not known to have a replica of {partition}.",
    )
