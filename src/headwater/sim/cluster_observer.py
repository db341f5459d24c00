"""Somebody who sees all brokers and the metadata store at once, and holds them to their promises.

No client could know so much. It looks at every change of the store's partition states when it is
made, and at the brokers as often as it is told to. It also knows the fault model of the durability
promise: whether a machine may lose its power now, without too many copies being lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from headwater.base.ids import TopicPartition
from headwater.cluster.node_documents import (
    PartitionState,
    TopicDocument,
    decode_partition_state,
    decode_topic,
)
from headwater.cluster.store.embedded.journal import Changes
from headwater.replication.partition.partition import Partition
from headwater.sim.broker_host import BrokerHost
from headwater.sim.checkers.differing_replicas import ReplicaLog, check_replicas_agree
from headwater.sim.checkers.high_watermark import CommittedEnds
from headwater.sim.checkers.two_leaders import LeadersByEpoch
from headwater.sim.histories.history import History, PropertyViolated
from headwater.sim.trace import Trace

_TOPIC_PATH: Final = re.compile(r"/brokers/topics/([^/]+)")
_STATE_PATH: Final = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state")


class ClusterObserver:
    def __init__(
        self, hosts: Sequence[BrokerHost], data: str, history: History, trace: Trace
    ) -> None:
        self.leaders = LeadersByEpoch()
        self.committed = CommittedEnds(history)
        #: What the store holds.
        self.states: dict[TopicPartition, PartitionState] = {}
        self._topics: dict[str, TopicDocument] = {}
        #: Members of an ISR who lost unsynced data and have not left it since.
        self._suspects: dict[TopicPartition, set[int]] = {}
        #: Partitions that a lone replica may have set back.
        self._set_back: set[TopicPartition] = set()
        self._hosts = hosts
        self._data = data
        self._trace = trace
        #: What an observer of the store found: it must not fail in the store's name.
        self._violation: PropertyViolated | None = None

    def check_store(self) -> None:
        if self._violation is not None:
            raise self._violation

    # -- the store -------------------------------------------------------------------------------

    def store_changed(self, changes: Changes) -> None:
        for path, row in changes.items():
            topic = _TOPIC_PATH.fullmatch(path)
            if topic is not None and row is not None:
                self._topics[topic[1]] = decode_topic(path, row.data)
            match = _STATE_PATH.fullmatch(path)
            if match is None:
                continue
            partition = TopicPartition(match[1], int(match[2]))
            if row is None:
                self.states.pop(partition, None)
                self._suspects.pop(partition, None)
                continue
            try:
                self._state_changed(partition, decode_partition_state(path, row.data))
            except PropertyViolated as violation:
                self._violation = self._violation or violation

    def _state_changed(self, partition: TopicPartition, state: PartitionState) -> None:
        self._trace.note(
            "observer",
            f"{partition} leader {state.leader} epoch {state.leader_epoch} isr {state.isr}",
        )
        if partition not in self.states:
            # Another topic of the same name begins anew.
            self.leaders.forget(partition)
            self.committed.forget(partition)
        self.states[partition] = state
        self._suspects.setdefault(partition, set()).intersection_update(state.isr)
        self.leaders.decide(partition, state.leader_epoch, state.leader)
        if not state.isr:
            raise PropertyViolated(f"somebody is always in sync: {partition} has an empty ISR")
        if state.leader >= 0 and state.leader not in state.isr:
            raise PropertyViolated(f"leaders are in sync: {partition} has {state}")

    def holders(self, partition: TopicPartition) -> tuple[int, ...]:
        """The brokers that shall have a partition, by what the store says."""
        return self._topics[partition.topic].replicas[partition.partition]

    def throttled(self) -> list[TopicPartition]:
        """Those whose replicas are copied slowly, by what the store says."""
        return [
            TopicPartition(name, number)
            for name, topic in sorted(self._topics.items())
            for number in topic.throttles
        ]

    def is_whole(self, partition: TopicPartition) -> bool:
        """Whether all replicas are in sync, none of them comes or goes, and the leader has heard
        how far they are.

        A new leader shows readers what it knows all of them to have, which at first is little.
        """
        state = self.states.get(partition)
        if state is None or state.leader < 0 or set(state.isr) != set(self.holders(partition)):
            return False
        topic, number = self._topics[partition.topic], partition.partition
        if number in topic.adding or number in topic.removing:
            return False
        host = self._hosts[state.leader]
        led = host.server.context.partitions.find(*partition) if host.serves else None
        return (
            led is not None
            and led.is_leader
            and led.leader_epoch == state.leader_epoch
            and led.high_watermark == led.log_end_offset
        )

    # -- the brokers -----------------------------------------------------------------------------

    def look(self) -> None:
        """Check who leads, and how far they are."""
        self.check_store()
        for broker_id, partition in self._partitions():
            if partition.is_leader:
                name = partition.topic_partition
                self.leaders.observe(name, partition.leader_epoch, broker_id)
                self.committed.observe(
                    name, partition.leader_epoch, partition.high_watermark, partition.log_end_offset
                )

    def compare_logs(self) -> None:
        """Check that the replicas that are up agree as far as they are sure."""
        logs: dict[TopicPartition, dict[int, ReplicaLog]] = {}
        files = {broker_id: self._log_files(broker_id) for broker_id in range(len(self._hosts))}
        for broker_id, partition in self._partitions():
            name = partition.topic_partition
            state = self.states.get(name)
            if state is None or (name in self._set_back and broker_id not in state.isr):
                continue
            logs.setdefault(name, {})[broker_id] = ReplicaLog(
                partition.high_watermark,
                tuple(files[broker_id].get(str(name), ())),
                partition.log_start_offset,
            )
        for name, replicas in sorted(logs.items()):
            check_replicas_agree(name, replicas)

    def _log_files(self, broker_id: int) -> dict[str, list[bytes]]:
        """By the names of their directories, the contents of all log files."""
        found: dict[str, list[bytes]] = {}
        for path, content in sorted(self._hosts[broker_id].disk.contents().items()):
            parts = path.removeprefix(self._data + "/").split("/")
            if len(parts) == 2 and parts[1].endswith(".log"):
                found.setdefault(parts[0], []).append(content)
        return found

    def _partitions(self) -> Iterator[tuple[int, Partition]]:
        for broker_id, host in enumerate(self._hosts):
            if host.serves:
                for partition in host.server.context.partitions:
                    yield broker_id, partition

    # -- the fault model -------------------------------------------------------------------------

    def may_lose_power(self, broker_id: int) -> bool:
        """Whether of every ISR of two or more there is another member that is whole."""
        return all(
            set(state.isr) - {broker_id} - self._suspects[partition]
            for partition, state in self.states.items()
            if broker_id in state.isr and len(state.isr) > 1
        )

    def power_lost(self, broker_id: int) -> list[TopicPartition]:
        """Take note; returns the partitions that may have been set back to what is acknowledged."""
        set_back: list[TopicPartition] = []
        for partition, state in self.states.items():
            if state.isr == (broker_id,):
                set_back.append(partition)
                self._set_back.add(partition)
                self.committed.lone_replica_lost(partition)
            elif broker_id in state.isr:
                self._suspects[partition].add(broker_id)
        return set_back
