"""Random histories of offsets, against a plain dictionary that says what must be visible.

Offsets come and go by commits, transactions and their ends, deletions of offsets, topics and
groups, time, and restarts; after every step another coordinator must know the same.
"""

from __future__ import annotations

import uuid
from typing import NamedTuple

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.coordinator.outcome import ProducerIdentity
from headwater.wire.schema import ZERO_UUID
from tests.support.tiers import rounds
from tests.support.worlds.offset_world import OffsetWorld

MINUTE_MS = 60_000
RETENTION_MS = 10 * MINUTE_MS
SETTINGS = {
    "offsets.retention.minutes": "10",
    "offsets.retention.check.interval.ms": str(MINUTE_MS),
}
GROUPS = ("g", "h")
PARTITIONS = (TopicPartition("a", 0), TopicPartition("b", 0))
TOPIC_IDS = (ZERO_UUID, uuid.UUID(int=1), uuid.UUID(int=2))

group_ids = st.sampled_from(GROUPS)
partitions = st.sampled_from(PARTITIONS)
topic_ids = st.sampled_from(TOPIC_IDS)
producers = st.builds(ProducerIdentity, st.integers(1, 2), st.integers(0, 2))
offsets = st.integers(0, 100)


class Expected(NamedTuple):
    offset: int
    position: int
    commit_ms: int
    expire_ms: int
    topic_id: uuid.UUID


Key = tuple[str, TopicPartition]


class OffsetSteps(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.world = OffsetWorld(SETTINGS)
        self.committed: dict[Key, Expected] = {}
        self.pending: dict[int, dict[Key, Expected]] = {}
        self.groups: set[str] = set()
        self.next_search_ms = self.world.now_ms + MINUTE_MS

    # -- steps -----------------------------------------------------------------------------------

    @rule(
        group_id=group_ids,
        key=partitions,
        offset=offsets,
        topic_id=topic_ids,
        retention_ms=st.sampled_from((None, 0, 90_000, 15 * MINUTE_MS)),
    )
    def commit(
        self,
        group_id: str,
        key: TopicPartition,
        offset: int,
        topic_id: uuid.UUID,
        retention_ms: int | None,
    ) -> None:
        now_ms = self.world.now_ms
        if retention_ms is None:
            expire_ms = now_ms + RETENTION_MS
            answer = self.world.commit(group_id, offset, key, topic_id=topic_id)
        else:
            # A record with its own retention has no room for the topic's id.
            expire_ms, topic_id = now_ms + retention_ms, ZERO_UUID
            answer = self.world.commit(group_id, offset, key, retention_ms=retention_ms)
        assert answer.get() == [ErrorCode.NONE]
        position = len(self.world.topic)
        self.committed[group_id, key] = Expected(offset, position, now_ms, expire_ms, topic_id)
        self.groups.add(group_id)

    @rule(group_id=group_ids, key=partitions, producer=producers, offset=offsets)
    def commit_in_transaction(
        self, group_id: str, key: TopicPartition, producer: ProducerIdentity, offset: int
    ) -> None:
        now_ms = self.world.now_ms
        self.world.commit_in_transaction(producer, group_id, offset, key)
        self.pending.setdefault(producer.producer_id, {})[group_id, key] = Expected(
            offset, len(self.world.topic), now_ms, now_ms + RETENTION_MS, ZERO_UUID
        )
        self.groups.add(group_id)

    @rule(group_id=group_ids, key=partitions, producer=producers, is_committed=st.booleans())
    def overtake(
        self, group_id: str, key: TopicPartition, producer: ProducerIdentity, is_committed: bool
    ) -> None:
        """A plain commit comes while a transaction is open that has committed the same offset."""
        self.commit_in_transaction(group_id, key, producer, 1)
        self.commit(group_id, key, 2, ZERO_UUID, None)
        self.end_transaction(producer, is_committed)

    @rule(producer=producers, is_committed=st.booleans())
    def end_transaction(self, producer: ProducerIdentity, is_committed: bool) -> None:
        self.world.end_transaction(producer, is_committed=is_committed)
        for key, expected in self.pending.pop(producer.producer_id, {}).items():
            former = self.committed.get(key)
            if is_committed and (former is None or former.position < expected.position):
                self.committed[key] = expected

    @rule(what=st.sampled_from(("offset", "topic", "group")), data=st.data())
    def delete(self, what: str, data: st.DataObject) -> None:
        if what == "topic":
            self.delete_topic(data.draw(partitions).topic, data.draw(topic_ids))
        elif self.groups:
            group_id = data.draw(st.sampled_from(sorted(self.groups)))
            if what == "offset":
                self.delete_offset(group_id, data.draw(partitions))
            else:
                self.delete_group(group_id)

    def delete_offset(self, group_id: str, key: TopicPartition) -> None:
        assert self.world.delete(group_id, [key]).get() == [ErrorCode.NONE]
        self.forget((group_id, key))

    def delete_topic(self, name: str, topic_id: uuid.UUID) -> None:
        self.world.delete_topic(name, topic_id)
        for expectations in (self.committed, *self.pending.values()):
            for key, expected in list(expectations.items()):
                is_same = ZERO_UUID in (expected.topic_id, topic_id) or (
                    expected.topic_id == topic_id
                )
                if key[1].topic == name and is_same:
                    self.forget(key)

    def delete_group(self, group_id: str) -> None:
        self.world.delete_group(group_id)
        for key in PARTITIONS:
            self.forget((group_id, key))
        self.groups.remove(group_id)

    @rule(ms=st.sampled_from((1, 20_000, MINUTE_MS, 5 * MINUTE_MS, RETENTION_MS)))
    def advance(self, ms: int) -> None:
        until_ms = self.world.now_ms + ms
        self.world.advance(ms)
        while self.next_search_ms <= until_ms:
            self.search(self.next_search_ms)
            self.next_search_ms += MINUTE_MS

    @rule(group_id=group_ids, key=partitions)
    def fail_to_commit(self, group_id: str, key: TopicPartition) -> None:
        self.world.fail_next = KafkaError(ErrorCode.NOT_COORDINATOR)
        assert self.world.commit(group_id, 1_000, key).error is not None

    @rule()
    def restart(self) -> None:
        self.world.restart()
        self.next_search_ms = self.world.now_ms + MINUTE_MS

    # -- what is expected ------------------------------------------------------------------------

    def forget(self, key: Key) -> None:
        self.committed.pop(key, None)
        for of_producer in self.pending.values():
            of_producer.pop(key, None)

    def search(self, now_ms: int) -> None:
        """What time does to offsets and groups."""
        open_keys = {key for of_producer in self.pending.values() for key in of_producer}
        for key, expected in list(self.committed.items()):
            if now_ms >= expected.expire_ms and key not in open_keys:
                del self.committed[key]
        self.groups = {group_id for group_id, _ in (*self.committed, *open_keys)}

    @invariant()
    def everything_is_as_expected(self) -> None:
        world = self.world
        open_keys = {key for of_producer in self.pending.values() for key in of_producer}
        for group_id in GROUPS:
            assert (world.shard.groups.find(group_id) is not None) == (group_id in self.groups)
            for key in PARTITIONS:
                expected = self.committed.get((group_id, key))
                fetched = world.fetch(group_id, key)
                assert fetched.error_code is ErrorCode.NONE
                assert fetched.offset == (-1 if expected is None else expected.offset)
                stable = world.fetch(group_id, key, require_stable=True)
                if (group_id, key) in open_keys:
                    assert stable.error_code is ErrorCode.UNSTABLE_OFFSET_COMMIT
                else:
                    assert stable == fetched
        world.check_replay()


TestOffsetSteps = OffsetSteps.TestCase
TestOffsetSteps.settings = settings(
    max_examples=rounds(40, 1_000),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
