"""All groups and offsets of one partition of `__consumer_offsets`.

The parts share the groups and nothing else: each protocol has its steps, offsets have theirs. The
version of a record's key tells whose it is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from headwater.base.errors import KafkaError
from headwater.cluster.image.change import ImageChange
from headwater.coordinator.group.classic.protocol import ClassicProtocol
from headwater.coordinator.group.consumer.protocol import ConsumerProtocol
from headwater.coordinator.group.environment import GroupEnvironment
from headwater.coordinator.group.groups import Groups
from headwater.coordinator.group.offsets.protocol import OffsetProtocol
from headwater.coordinator.group.removal import GroupRemoval
from headwater.coordinator.outcome import Outcome, ProducerIdentity
from headwater.coordinator.stored_record import StoredRecord, read_version
from headwater.wire.codec import MalformedMessageError

_logger = logging.getLogger(__name__)

#: Takes key, value, offset, the producer of an open transaction if any, and the record's time.
Replay = Callable[[bytes, bytes | None, int, ProducerIdentity | None, int], None]


class GroupShard:
    def __init__(self, environment: GroupEnvironment) -> None:
        self.groups = Groups()
        self.offsets = OffsetProtocol(environment, self.groups)
        self.classic = ClassicProtocol(environment, self.groups)
        self.consumer = ConsumerProtocol(environment, self.groups, self.classic)
        self.removal = GroupRemoval(environment, self.groups, self.offsets)
        self._replays: Mapping[int, Replay] = {
            **self.offsets.replays(),
            **self.classic.replays(),
            **self.consumer.replays(),
        }

    def replay(
        self, record: StoredRecord, offset: int, producer: ProducerIdentity | None, now_ms: int
    ) -> None:
        try:
            replay = self._replays.get(read_version(record.key))
            if replay is not None:
                replay(record.key, record.value, offset, producer, now_ms)
        except MalformedMessageError as error:
            # Nobody can read it, also not after another attempt; the other groups go on.
            _logger.error("a record at offset %d of a group cannot be read: %s", offset, error)

    def replay_transaction_end(self, producer: ProducerIdentity, *, is_committed: bool) -> None:
        self.offsets.replay_transaction_end(producer, is_committed=is_committed)

    def on_loaded(self, now_ms: int) -> None:
        self.classic.on_loaded(now_ms)
        self.consumer.on_loaded(now_ms)
        self.removal.on_loaded(now_ms)

    def on_image(self, change: ImageChange, now_ms: int) -> list[Outcome]:
        return [
            *self.consumer.on_image(change, now_ms),
            *self.offsets.on_image(change, now_ms),
        ]

    def close(self, error: KafkaError) -> None:
        self.classic.close(error)

    def stored_state(self) -> object:
        groups = {group.group_id: group.stored_state() for group in self.groups}
        return groups, self.offsets.stored_state()
