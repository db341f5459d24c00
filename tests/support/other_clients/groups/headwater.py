"""Headwater's own consumer as a member of a group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition as Partition
from headwater.client.consumer.consumer import Consumer
from headwater.client.consumer.listeners import RebalanceListener
from headwater.client.consumer.membership.membership import GroupIdentity
from tests.support.other_clients.contract import FETCH_WAIT_MS, ClientError
from tests.support.other_clients.groups.contract import (
    AUTO_COMMIT_MS,
    HEARTBEAT_MS,
    POLL_S,
    Event,
    GroupRecord,
    Membership,
    Owned,
    TopicPartition,
)


class HeadwaterMember:
    """See `contract.GroupMember`."""

    name = "own-client"

    def __init__(self, bootstrap: str, membership: Membership) -> None:
        self.events: list[Event] = []
        settings: dict[str, object] = {
            "bootstrap.servers": bootstrap,
            "group.id": membership.group,
            "group.protocol": membership.protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": membership.auto_commit,
            "auto.commit.interval.ms": AUTO_COMMIT_MS,
            "isolation.level": membership.isolation,
            "metadata.max.age.ms": membership.metadata_age_ms,
            "fetch.max.wait.ms": FETCH_WAIT_MS,
        }
        if membership.instance_id is not None:
            settings["group.instance.id"] = membership.instance_id
        if membership.protocol == "classic":
            settings["session.timeout.ms"] = membership.session_timeout_ms
            settings["heartbeat.interval.ms"] = HEARTBEAT_MS
            settings["partition.assignment.strategy"] = list(membership.assignors)
        self._consumer = Consumer(settings)
        self._consumer.subscribe(
            list(membership.topics) if membership.pattern is None else None,
            pattern=membership.pattern,
            listener=_Listener(self.events),
        )

    def poll(self) -> list[GroupRecord]:
        try:
            polled = self._consumer.poll(POLL_S)
        except KafkaError as error:
            raise _named(error) from error
        return [GroupRecord(each.topic, each.partition, each.offset, each.value) for each in polled]

    def assignment(self) -> Owned:
        return _owned(self._consumer.assignment())

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        given = None if offsets is None else {Partition(*key): at for key, at in offsets.items()}
        try:
            self._consumer.commit(given)
        except KafkaError as error:
            raise _named(error) from error

    def commit_later(self) -> None:
        self._consumer.commit_async()

    def committed(self, partition: TopicPartition) -> int | None:
        key = Partition(*partition)
        found = self._consumer.committed([key])[key]
        return None if found is None else found.offset

    def group_metadata(self) -> GroupIdentity:
        return self._consumer.group_identity()

    def close(self) -> None:
        self._consumer.close()


class _Listener(RebalanceListener):
    def __init__(self, events: list[Event]) -> None:
        self._events = events

    def on_partitions_revoked(self, consumer: Any, partitions: Iterable[Partition]) -> None:
        self._events.append(Event("revoked", _owned(partitions)))

    def on_partitions_assigned(self, consumer: Any, partitions: Iterable[Partition]) -> None:
        self._events.append(Event("assigned", _owned(partitions)))

    def on_partitions_lost(self, consumer: Any, partitions: Iterable[Partition]) -> None:
        self._events.append(Event("lost", _owned(partitions)))


def _owned(partitions: Iterable[Partition]) -> Owned:
    return frozenset((each.topic, each.partition) for each in partitions)


def _named(error: KafkaError) -> ClientError:
    return ClientError(error.code.name, str(error))
