"""A shard of the transaction coordinator in virtual time, with markers that are written at will."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import count
from typing import TypeVar

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.coordinator.outcome import Outcome, ProducerIdentity, Reply
from headwater.coordinator.stored_record import StoredRecord
from headwater.coordinator.timers import Timers
from headwater.coordinator.txn.producer_initialization import (
    InitialisationRequest,
    InitialisedProducer,
)
from headwater.coordinator.txn.transaction_environment import TransactionEnvironment
from headwater.coordinator.txn.transaction_metadata import (
    PreparedTransaction,
    ProducerIdNeededError,
    TransactionMetadata,
)
from headwater.coordinator.txn.transaction_record import (
    transaction_metadata_of,
    transaction_record,
    transactional_id_of,
)
from headwater.coordinator.txn.transaction_shard import TransactionShard
from tests.support.worlds.shard_world import Answer, ManualTimers, ShardWorld

R = TypeVar("R")

ID = "payments"
TIMEOUT_MS = 60_000
SCAN_MS = 10_000
EXPIRY_SCAN_MS = 3_600_000
EXPIRY_MS = 7 * 24 * 3_600_000

ShardOperation = Callable[[TransactionShard, int, int | None, Reply[R]], Outcome]


def orders(*partitions: int) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition("orders", partition) for partition in partitions)


@lru_cache(maxsize=10_000)
def decoded(record: StoredRecord) -> TransactionMetadata | None:
    """What a record tells, None if it is a tombstone."""
    if record.value is None:
        return None
    return transaction_metadata_of(transactional_id_of(record.key), record.value)


class FixedSettings:
    """Kafka's defaults, which a test may change."""

    def __init__(self) -> None:
        self.integers: dict[str, int] = {
            "transaction.max.timeout.ms": 900_000,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": SCAN_MS,
            "transaction.remove.expired.transaction.cleanup.interval.ms": EXPIRY_SCAN_MS,
            "transactional.id.expiration.ms": EXPIRY_MS,
        }
        self.booleans: dict[str, bool] = {"transaction.two.phase.commit.enable": True}

    def is_set(self, name: str) -> bool:
        return True

    def integer(self, name: str) -> int:
        return self.integers[name]

    def boolean(self, name: str) -> bool:
        return self.booleans[name]

    def text(self, name: str) -> str:
        raise KeyError(name)

    def texts(self, name: str) -> tuple[str, ...]:
        raise KeyError(name)


class TransactionWorld:
    def __init__(
        self,
        make_shard: Callable[[TransactionEnvironment], TransactionShard] = TransactionShard,
        stored: Mapping[str, TransactionMetadata] | None = None,
    ) -> None:
        self._make_shard = make_shard
        self.settings = FixedSettings()
        self.coordinator_epoch = 1
        #: All that was handed out to be written, in order.
        self.prepared: list[PreparedTransaction] = []
        #: Sees each of them at that moment.
        self.on_markers: Callable[[PreparedTransaction], None] = lambda _: None
        self._ids = count(1000)
        self._safe_length = 0
        self.world: ShardWorld[TransactionShard] = ShardWorld(self._new_shard)
        for metadata in (stored or {}).values():
            self.world.settle(Outcome([transaction_record(metadata)]))

    def _new_shard(self, timers: Timers) -> TransactionShard:
        def deliver(prepared: PreparedTransaction) -> None:
            self.prepared.append(prepared)
            self.on_markers(prepared)

        return self._make_shard(
            TransactionEnvironment(self.settings, timers, deliver, self.coordinator_epoch)
        )

    @property
    def metadata(self) -> TransactionMetadata:
        """Of the one id that most tests are about."""
        return self.world.shard.transactions.get(ID)

    # -- what is safe ----------------------------------------------------------------------------

    @property
    def safe_records(self) -> list[StoredRecord]:
        """Those that no failover takes back."""
        length = self._safe_length if self.world.hold else len(self.world.topic)
        return [written.record for written in self.world.topic[:length] if written.record]

    def hold(self) -> None:
        """From now on nothing that is written becomes safe."""
        if not self.world.hold:
            self._safe_length = len(self.world.topic)
            self.world.hold = True

    def release(self) -> None:
        self.world.hold = False
        self.world.release()

    def replace_coordinator(self, *, loses_tail: bool = False) -> None:
        """Another broker takes over, perhaps without what was not safe yet."""
        if loses_tail and self.world.hold:
            del self.world.topic[self._safe_length :]
        now_ms = self.world.now_ms
        self.world.timers = ManualTimers()  # Those of the old coordinator never fire.
        self.world.timers.now_ms = now_ms
        self.world.lose(KafkaError(ErrorCode.NOT_COORDINATOR))
        self.world.hold = False
        self.coordinator_epoch += 1
        shard = self._new_shard(self.world.timers)
        for offset, written in enumerate(self.world.topic):
            assert written.record is not None
            shard.replay(written.record, offset, None, written.written_ms)
        self.world.shard = shard
        shard.on_loaded(now_ms)
        self.world.advance(0)

    def look_seldom(self) -> None:
        """Let days pass quickly: timeouts are looked for every hour only."""
        name = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
        self.settings.integers[name] = 3_600_000

    # -- requests --------------------------------------------------------------------------------

    def ask(self, operation: ShardOperation[R]) -> Answer[R]:
        """As a handler does, with a new producer id if it takes one; errors are answers too."""

        def attempt(new_id: int | None) -> Answer[R]:
            return self.world.ask(
                lambda shard, now_ms, reply: operation(shard, now_ms, new_id, reply)
            )

        try:
            try:
                return attempt(None)
            except ProducerIdNeededError:
                return attempt(next(self._ids))
        except KafkaError as error:
            answer: Answer[R] = Answer()
            answer.take(error)
            return answer

    def ask_init(
        self,
        transactional_id: str = ID,
        *,
        timeout_ms: int = TIMEOUT_MS,
        expected: ProducerIdentity | None = None,
        two_phase: bool = False,
        keep: bool = False,
    ) -> Answer[InitialisedProducer]:
        request = InitialisationRequest(transactional_id, timeout_ms, expected, two_phase, keep)
        return self.ask(
            lambda shard, now_ms, new_id, reply: shard.producers.initialise(
                request, new_id, now_ms, reply
            )
        )

    def ask_add(
        self,
        producer: ProducerIdentity,
        partitions: frozenset[TopicPartition],
        version: int = 2,
        transactional_id: str = ID,
    ) -> Answer[frozenset[TopicPartition]]:
        return self.ask(
            lambda shard, now_ms, _, reply: shard.partitions.add(
                transactional_id, producer, partitions, version, now_ms, reply
            )
        )

    def ask_end(
        self,
        producer: ProducerIdentity,
        *,
        commit: bool,
        version: int = 2,
        transactional_id: str = ID,
    ) -> Answer[ProducerIdentity]:
        return self.ask(
            lambda shard, now_ms, new_id, reply: shard.ends.end(
                transactional_id, producer, commit, version, new_id, now_ms, reply
            )
        )

    # -- and their answers, where they come at once ----------------------------------------------

    def init(
        self,
        transactional_id: str = ID,
        *,
        timeout_ms: int = TIMEOUT_MS,
        expected: ProducerIdentity | None = None,
        two_phase: bool = False,
        keep: bool = False,
    ) -> ProducerIdentity:
        answer = self.ask_init(
            transactional_id,
            timeout_ms=timeout_ms,
            expected=expected,
            two_phase=two_phase,
            keep=keep,
        )
        return answer.get().producer

    def add(self, producer: ProducerIdentity, *partitions: int, version: int = 2) -> None:
        self.ask_add(producer, orders(*partitions), version).get()

    def end(
        self, producer: ProducerIdentity, *, commit: bool, version: int = 2
    ) -> ProducerIdentity:
        return self.ask_end(producer, commit=commit, version=version).get()

    def verify(self, producer: ProducerIdentity, *partitions: int) -> frozenset[TopicPartition]:
        return self.world.shard.partitions.verify(ID, producer, orders(*partitions))

    def write_markers(self, prepared: PreparedTransaction) -> bool:
        """All markers stand; says whether that completed the transaction."""
        return self.world.write(lambda shard, now_ms: shard.markers_written(prepared, now_ms)).get()

    def write_last_markers(self) -> None:
        assert self.write_markers(self.prepared[-1])


def code_of(answer: Answer[R]) -> ErrorCode:
    """The error that came."""
    assert answer.error is not None, f"it was answered with {answer.value}"
    return answer.error.code
