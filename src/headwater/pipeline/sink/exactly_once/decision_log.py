"""Where decisions are kept: a compacted topic, and a pointer for each query.

The pointer is an offset that is committed for the query's group, in the same transaction as the
record that it points to, with the batch as its metadata: one request tells what was decided last,
and waits for a decision that is just being made. Brokers forget committed offsets after a while
(`offsets.retention.minutes`), and a new query has none: then the topic is read from its beginning.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from typing import Final

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.admin import Admin, NewTopic, OffsetTime, require_all
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.consumer import Consumer
from headwater.client.consumer.membership.membership import GroupIdentity
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.kafka_errors import (
    TopicAlreadyExistsError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from headwater.client.producer.producer import Producer
from headwater.client.settings.consumer_settings import CONSUMER_SETTINGS
from headwater.pipeline.sink.exactly_once.decision import (
    Decision,
    Pointer,
    decode_decision,
    encode_decision,
)
from headwater.pipeline.sink.exactly_once.task_name import Prepared, QueryName
from headwater.pipeline.sink.sink_errors import DecisionsUnreadableError

DECISIONS_TOPIC: Final = "headwater-spark-decisions"
_PLACE: Final = TopicPartition(DECISIONS_TOPIC, 0)
#: Small segments, so that a new query has little to read.
_TOPIC: Final = NewTopic(
    DECISIONS_TOPIC,
    partition_count=1,
    configs={
        "cleanup.policy": "compact",
        "segment.bytes": str(4 << 20),
        "min.cleanable.dirty.ratio": "0.1",
    },
)
_READ_TIMEOUT_S: Final = 60.0


class DecisionLog:
    """The decisions of one query. The admin is its user's; `client` are settings of a client."""

    def __init__(self, query: QueryName, admin: Admin, client: Mapping[str, str]) -> None:
        self._query = query
        self._admin = admin
        self._consumer_settings = {
            name: value for name, value in client.items() if name in CONSUMER_SETTINGS
        }
        #: Whether the topic is known to be there.
        self._has_topic = False

    def read_pointer(self) -> Pointer:
        group_id = self._query.group_id
        listed = self._admin.list_group_offsets(
            [group_id], partitions=[_PLACE], require_stable=True
        )
        found = require_all(listed)[group_id].get(_PLACE)
        if found is not None:
            self._has_topic = True
            return Pointer(int(found.metadata), found.offset)
        record = self._scan()
        if record is None or record.value is None:
            return Pointer()
        return Pointer(decode_decision(self._query, record.value).batch, record.offset)

    def read_entries(self, pointer: Pointer) -> frozenset[Prepared]:
        if pointer == Pointer():
            return frozenset()
        # It is committed, or there would be no pointer to it; but others' may not be, before it.
        with self._consumer("read_uncommitted") as consumer:
            consumer.assign([_PLACE])
            consumer.seek(_PLACE, pointer.version)
            deadline_s = time.monotonic() + _READ_TIMEOUT_S
            while time.monotonic() < deadline_s:
                for record in consumer.poll(0.5, max_records=1):
                    if record.offset == pointer.version and record.value is not None:
                        return decode_decision(self._query, record.value).entries
                    raise DecisionsUnreadableError(
                        f"The decision of {self._query.text} at offset {pointer.version} of "
                        f"{DECISIONS_TOPIC} is gone."
                    )
        raise DecisionsUnreadableError(
            f"{DECISIONS_TOPIC} could not be read within {_READ_TIMEOUT_S:g} s."
        )

    def make(self, decision: Decision, producer: Producer) -> None:
        """In one transaction of this producer, which has the transactional id of the query."""
        self._ensure_topic()
        producer.begin_transaction()
        record = producer.send(
            DECISIONS_TOPIC,
            encode_decision(decision),
            self._query.text.encode(),
            partition=_PLACE.partition,
        )
        offset = record.result(_READ_TIMEOUT_S).offset
        producer.send_offsets_to_transaction(
            {_PLACE: OffsetAndMetadata(offset, metadata=str(decision.batch))},
            GroupIdentity(self._query.group_id),
        )
        producer.commit_transaction()

    def forget(self, producer: Producer) -> None:
        """Nobody will ask for this query again."""
        with producer.transaction():
            key = self._query.text.encode()
            producer.send(DECISIONS_TOPIC, None, key, partition=_PLACE.partition)
        # One that cannot be deleted now expires by itself.
        self._admin.delete_groups([self._query.group_id], raise_errors=False)

    def _ensure_topic(self) -> None:
        if not self._has_topic:
            with contextlib.suppress(TopicAlreadyExistsError):
                self._admin.create_topics([_TOPIC])
            self._has_topic = True

    def _scan(self) -> ConsumerRecord | None:
        """The query's last record; up to what is the end now, and not before that is decided."""
        ends = self._admin.list_offsets({_PLACE: OffsetTime.LATEST})
        end = ends[_PLACE]
        if isinstance(end, UnknownTopicOrPartitionError | UnknownTopicIdError):
            return None
        if isinstance(end, KafkaError):
            raise end
        key = self._query.text.encode()
        last: ConsumerRecord | None = None
        with self._consumer("read_committed") as consumer:
            consumer.assign([_PLACE])
            consumer.seek_to_beginning([_PLACE])
            deadline_s = time.monotonic() + _READ_TIMEOUT_S
            while consumer.position(_PLACE) < end.offset:
                if time.monotonic() > deadline_s:
                    raise DecisionsUnreadableError(
                        f"{DECISIONS_TOPIC} could not be read up to offset {end.offset} within "
                        f"{_READ_TIMEOUT_S:g} s: a transaction in it is open."
                    )
                for record in consumer.poll(0.2, max_records=10_000):
                    if record.key == key:
                        last = record
        return last

    def _consumer(self, isolation_level: str) -> Consumer:
        return Consumer(
            self._consumer_settings | {"isolation.level": isolation_level},
            enable_auto_commit=False,
            group_id=None,
        )
