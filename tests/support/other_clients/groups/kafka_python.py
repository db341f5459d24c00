"""kafka-python as a member of a group."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.support.other_clients.contract import (
    FETCH_WAIT_MS,
    ClientError,
    error_name,
    require_package,
)
from tests.support.other_clients.groups.contract import (
    AUTO_COMMIT_MS,
    HEARTBEAT_MS,
    Event,
    GroupRecord,
    Membership,
    Owned,
    TopicPartition,
)

#: It forgets that it has joined when the answer comes between two polls. So they are long, and in
#: a rebalance one follows the other at once.
POLL_MS = 300
POLLS_MAX = 20

ASSIGNORS = {
    "range": ("kafka.coordinator.assignors.range", "RangePartitionAssignor"),
    "roundrobin": ("kafka.coordinator.assignors.roundrobin", "RoundRobinPartitionAssignor"),
    "cooperative-sticky": (
        "kafka.coordinator.assignors.cooperative_sticky",
        "CooperativeStickyAssignor",
    ),
}


class KafkaPythonMember:
    """See `contract.GroupMember`."""

    name = "kafka-python"

    def __init__(self, bootstrap: str, membership: Membership) -> None:
        self._kafka = require_package("kafka", self.name)
        self._errors = require_package("kafka.errors", self.name)
        self._states = require_package("kafka.structs", self.name).MemberState
        self.events: list[Event] = []
        with self._named_errors():
            self._consumer = self._kafka.KafkaConsumer(
                bootstrap_servers=bootstrap,
                group_id=membership.group,
                group_instance_id=membership.instance_id,
                auto_offset_reset="earliest",
                enable_auto_commit=membership.auto_commit,
                auto_commit_interval_ms=AUTO_COMMIT_MS,
                isolation_level=membership.isolation,
                session_timeout_ms=membership.session_timeout_ms,
                heartbeat_interval_ms=HEARTBEAT_MS,
                metadata_max_age_ms=membership.metadata_age_ms,
                fetch_max_wait_ms=FETCH_WAIT_MS,
                reconnect_backoff_max_ms=500,
                metrics_enabled=False,
                partition_assignment_strategy=[_assignor(each) for each in membership.assignors],
            )
        pattern = membership.pattern
        wanted: dict[str, Any] = (
            {"topics": list(membership.topics)} if pattern is None else {"pattern": f"^{pattern}"}
        )
        self._consumer.subscribe(**wanted, listener=self._listener())

    def poll(self) -> list[GroupRecord]:
        with self._named_errors():
            for _ in range(POLLS_MAX):
                polled = self._consumer.poll(timeout_ms=POLL_MS)
                if self._consumer.group_metadata().state != self._states.REBALANCING:
                    break
        return [
            GroupRecord(each.topic, each.partition, each.offset, each.value)
            for records in polled.values()
            for each in records
        ]

    def assignment(self) -> Owned:
        return _owned(self._consumer.assignment())

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        with self._named_errors():
            self._consumer.commit(None if offsets is None else self._positions(offsets))

    def commit_later(self) -> None:
        self._consumer.commit_async()

    def committed(self, partition: TopicPartition) -> int | None:
        with self._named_errors():
            found = self._consumer.committed(self._kafka.TopicPartition(*partition))
        return None if found is None else int(found)

    def group_metadata(self) -> Any:
        return self._consumer.group_metadata()

    def close(self) -> None:
        self._consumer.close()

    def _positions(self, offsets: Mapping[TopicPartition, int]) -> dict[Any, Any]:
        return {
            self._kafka.TopicPartition(*each): self._kafka.OffsetAndMetadata(offset, "", -1)
            for each, offset in offsets.items()
        }

    def _listener(self) -> Any:
        events = self.events

        class Listener(self._kafka.ConsumerRebalanceListener):  # type: ignore[name-defined, misc]
            def on_partitions_assigned(self, assigned: Any) -> None:
                events.append(Event("assigned", _owned(assigned)))

            def on_partitions_revoked(self, revoked: Any) -> None:
                events.append(Event("revoked", _owned(revoked)))

            def on_partitions_lost(self, lost: Any) -> None:
                events.append(Event("lost", _owned(lost)))

        return Listener()

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except self._errors.KafkaError as error:
            code = getattr(error, "errno", None) or 0
            own = re.sub(r"Error$", "", type(error).__name__)
            raise ClientError(error_name(code, own), str(error)) from error


def _assignor(name: str) -> Any:
    module, kind = ASSIGNORS[name]
    return getattr(importlib.import_module(module), kind)


def _owned(partitions: Any) -> Owned:
    return frozenset((each.topic, each.partition) for each in partitions)
