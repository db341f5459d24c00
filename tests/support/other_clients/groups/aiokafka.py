"""aiokafka as a member of a group, with an event loop on a thread of its own."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from tests.support.other_clients.contract import (
    FETCH_WAIT_MS,
    TIMEOUT_S,
    ClientError,
    error_name,
    require_package,
)
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

Result = TypeVar("Result")

ASSIGNORS = {"range": "RangePartitionAssignor", "roundrobin": "RoundRobinPartitionAssignor"}


class AiokafkaMember:
    """See `contract.GroupMember`."""

    name = "aiokafka"

    def __init__(self, bootstrap: str, membership: Membership) -> None:
        self._aiokafka = require_package("aiokafka", self.name)
        self._errors = require_package("aiokafka.errors", self.name)
        self._membership = membership
        self.events: list[Event] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="aiokafka", daemon=True)
        self._thread.start()
        try:
            self._consumer = self._run(self._start(bootstrap))
        except BaseException:
            self._end_loop()
            raise

    def poll(self) -> list[GroupRecord]:
        polled = self._run(self._consumer.getmany(timeout_ms=int(POLL_S * 1000)))
        return [
            GroupRecord(each.topic, each.partition, each.offset, each.value)
            for records in polled.values()
            for each in records
        ]

    def assignment(self) -> Owned:
        return _owned(self._consumer.assignment())

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        self._run(self._consumer.commit(None if offsets is None else self._positions(offsets)))

    def commit_later(self) -> None:
        asyncio.run_coroutine_threadsafe(self._consumer.commit(), self._loop)

    def committed(self, partition: TopicPartition) -> int | None:
        found = self._run(self._consumer.committed(self._aiokafka.TopicPartition(*partition)))
        return None if found is None else int(found)

    def group_metadata(self) -> str:
        return self._membership.group

    def close(self) -> None:
        try:
            self._run(self._consumer.stop())
        finally:
            self._end_loop()

    async def _start(self, bootstrap: str) -> Any:
        membership = self._membership
        assignors = (
            require_package("aiokafka.coordinator.assignors.range", self.name),
            (require_package("aiokafka.coordinator.assignors.roundrobin", self.name)),
        )
        known = {name: kind for module in assignors for name, kind in vars(module).items()}
        consumer = self._aiokafka.AIOKafkaConsumer(
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
            partition_assignment_strategy=[known[ASSIGNORS[each]] for each in membership.assignors],
        )
        await consumer.start()
        wanted: dict[str, Any] = (
            {"topics": list(membership.topics)}
            if membership.pattern is None
            else {"pattern": f"^{membership.pattern}"}
        )
        consumer.subscribe(**wanted, listener=self._listener())
        return consumer

    def _positions(self, offsets: Mapping[TopicPartition, int]) -> dict[Any, int]:
        return {self._aiokafka.TopicPartition(*each): offset for each, offset in offsets.items()}

    def _listener(self) -> Any:
        events = self.events

        class Listener(self._aiokafka.ConsumerRebalanceListener):  # type: ignore[name-defined, misc]
            def on_partitions_assigned(self, assigned: Any) -> None:
                events.append(Event("assigned", _owned(assigned)))

            def on_partitions_revoked(self, revoked: Any) -> None:
                events.append(Event("revoked", _owned(revoked)))

        return Listener()

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Do it on the loop's thread and wait; its errors get the protocol's names."""
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result(TIMEOUT_S)
        except self._errors.KafkaError as error:
            code = getattr(error, "errno", None) or 0
            own = re.sub(r"Error$", "", type(error).__name__)
            raise ClientError(error_name(code, own), str(error)) from error

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _owned(partitions: Any) -> Owned:
    return frozenset((each.topic, each.partition) for each in partitions)
