"""Producer state against a reference that keeps every batch and looks everything up anew."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.storage.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    OutOfOrderSequenceError,
)
from headwater.storage.producers.entry import SEQUENCE_MAX, AppendedBatch, AppendOrigin
from headwater.storage.producers.snapshot import decode_snapshot, encode_snapshot
from headwater.storage.producers.state import ProducerStates
from headwater.wire.records import BatchHeader
from tests.support.tiers import rounds
from tests.support.values.batch_headers import data_header, marker

EXPIRATION_MS = 60_000


@dataclass
class NaiveProducer:
    """All that a producer ever wrote: data headers, and markers as (epoch, None)."""

    events: list[tuple[int, BatchHeader | None]] = field(default_factory=list)
    last_timestamp: int = -1

    def recent(self) -> list[BatchHeader]:
        """The last five batches after the last change of epoch."""
        batches: list[BatchHeader] = []
        for epoch, header in reversed(self.events):
            if epoch != self.events[-1][0]:
                break
            if header is not None:
                batches.insert(0, header)
        return batches[-5:]


@dataclass
class NaiveTransaction:
    producer_id: int
    first_offset: int
    last_offset: int | None = None


class NaiveStates:
    def __init__(self) -> None:
        self.producers: dict[int, NaiveProducer] = {}
        self.transactions: list[NaiveTransaction] = []
        self.end_offset = 0
        self.high_watermark = 0

    def open_transaction(self, producer_id: int) -> NaiveTransaction | None:
        for each in self.transactions:
            if each.producer_id == producer_id and each.last_offset is None:
                return each
        return None

    def verdict(self, header: BatchHeader) -> type[KafkaError] | BatchHeader | None:
        """What a client must hear: an error, the batch that it repeats, or nothing."""
        known = self.producers.get(header.producer_id)
        if known is not None:
            epoch, recent = known.events[-1][0], known.recent()
            sequences = (header.base_sequence, header.last_sequence)
            if header.producer_epoch == epoch:
                for batch in recent:
                    if (batch.base_sequence, batch.last_sequence) == sequences:
                        return batch
            expected = 0
            if header.producer_epoch < epoch:
                return InvalidProducerEpochError
            if header.producer_epoch == epoch and recent:
                expected = (recent[-1].last_sequence + 1) & SEQUENCE_MAX
            if header.base_sequence != expected:
                return OutOfOrderSequenceError
        if not header.is_transactional and self.open_transaction(header.producer_id):
            return InvalidTxnStateError
        return None

    def write(self, header: BatchHeader) -> None:
        producer = self.producers.setdefault(header.producer_id, NaiveProducer())
        producer.events.append((header.producer_epoch, header))
        producer.last_timestamp = header.max_timestamp
        if header.is_transactional and not self.open_transaction(header.producer_id):
            self.transactions.append(NaiveTransaction(header.producer_id, header.base_offset))
        self.end_offset = header.next_offset

    def mark(self, header: BatchHeader) -> NaiveTransaction | None:
        producer = self.producers.setdefault(header.producer_id, NaiveProducer())
        producer.events.append((header.producer_epoch, None))
        producer.last_timestamp = header.max_timestamp
        self.end_offset = header.next_offset
        ended = self.open_transaction(header.producer_id)
        if ended is not None:
            ended.last_offset = header.base_offset
        return ended

    def first_unstable_offset(self) -> int | None:
        return min(
            (
                each.first_offset
                for each in self.transactions
                if each.last_offset is None or each.last_offset >= self.high_watermark
            ),
            default=None,
        )

    def reload(self) -> None:
        """A snapshot keeps the last batch only, and truncation ends at the high watermark."""
        for producer in self.producers.values():
            epoch, recent = producer.events[-1][0], producer.recent()
            # There is one timestamp for the producer, which may be that of a marker.
            kept = [header._replace(max_timestamp=producer.last_timestamp) for header in recent]
            producer.events = [(epoch, header) for header in kept[-1:]] or [(epoch, None)]
        self.high_watermark = self.end_offset

    def expire(self, now_ms: int) -> None:
        for producer_id, producer in list(self.producers.items()):
            idle = now_ms - producer.last_timestamp >= EXPIRATION_MS
            if idle and self.open_transaction(producer_id) is None:
                del self.producers[producer_id]


@dataclass(frozen=True)
class Step:
    """One thing to do; the numbers are taken relative to where the producer stands."""

    kind: str
    producer_id: int
    epoch_change: int
    sequence_change: int
    count: int
    flag: bool


steps = st.builds(
    Step,
    kind=st.sampled_from(["data"] * 8 + ["marker"] * 3 + ["watermark", "reload", "expire"]),
    producer_id=st.integers(1, 3),
    epoch_change=st.sampled_from([0, 0, 0, 0, 1, -1]),
    sequence_change=st.sampled_from([0, 0, 0, 0, 1, -1, -2, -9]),
    count=st.sampled_from([1, 1, 3, 1 << 29]),
    flag=st.booleans(),
)


def stands_at(naive: NaiveStates, producer_id: int) -> tuple[int, int]:
    """The producer's epoch, and the sequence number that it would use next."""
    producer = naive.producers.get(producer_id)
    if producer is None:
        return 5, SEQUENCE_MAX - 5  # Close to the end, so that numbers wrap around.
    recent = producer.recent()
    next_sequence = (recent[-1].last_sequence + 1) & SEQUENCE_MAX if recent else 0
    return producer.events[-1][0], next_sequence


def take_step(states: ProducerStates, naive: NaiveStates, step: Step, now_ms: int) -> None:
    epoch, next_sequence = stands_at(naive, step.producer_id)
    epoch += step.epoch_change
    if step.kind == "data":
        sequence = 0 if step.epoch_change > 0 else next_sequence
        header = data_header(
            producer_id=step.producer_id,
            epoch=epoch,
            sequence=(sequence + step.sequence_change) & SEQUENCE_MAX,
            offset=naive.end_offset,
            count=step.count,
            timestamp=now_ms,
            transactional=step.flag,
        )
        take_data(states, naive, header)
    elif step.kind == "marker":
        take_marker(states, naive, step, max(epoch, 0), now_ms)
    elif step.kind == "watermark":
        naive.high_watermark = max(naive.high_watermark, naive.end_offset - step.count)
        states.on_high_watermark(naive.high_watermark)
    elif step.kind == "reload":
        naive.reload()
        entries = decode_snapshot(encode_snapshot(states))
        states.load(entries, states.end_offset, now_ms=0)
    else:
        naive.expire(now_ms)
        states.remove_expired(now_ms)


def take_data(states: ProducerStates, naive: NaiveStates, header: BatchHeader) -> None:
    verdict = naive.verdict(header)
    batches = [AppendedBatch(header)]
    if isinstance(verdict, type):
        with pytest.raises(verdict):
            states.prepare(batches, origin=AppendOrigin.CLIENT)
        return
    pending = states.prepare(batches, origin=AppendOrigin.CLIENT)
    if verdict is None:
        assert pending.duplicate is None
        states.apply(pending)
        naive.write(header)
    else:
        assert pending.duplicate is not None
        assert pending.duplicate.first_offset == verdict.base_offset
        assert pending.duplicate.last_offset == verdict.last_offset
        assert pending.duplicate.timestamp == verdict.max_timestamp


def take_marker(
    states: ProducerStates, naive: NaiveStates, step: Step, epoch: int, now_ms: int
) -> None:
    batch = marker(
        producer_id=step.producer_id,
        epoch=epoch,
        offset=naive.end_offset,
        timestamp=now_ms,
        commit=step.flag,
    )
    known = naive.producers.get(step.producer_id)
    if known is not None and epoch < known.events[-1][0]:
        with pytest.raises(InvalidProducerEpochError):
            states.prepare([batch], origin=AppendOrigin.COORDINATOR)
        return
    pending = states.prepare([batch], origin=AppendOrigin.COORDINATOR)
    states.apply(pending)
    ended = naive.mark(batch.header)
    assert len(pending.completed) == (ended is not None)
    for completed in pending.completed:
        assert ended is not None
        assert completed == (
            step.producer_id,
            ended.first_offset,
            ended.last_offset,
            not step.flag,
        )
        others = [each for each in naive.transactions if each.last_offset is None]
        expected = min((each.first_offset for each in others), default=naive.end_offset)
        assert states.last_stable_offset(completed) == expected
        states.complete_transaction(completed)


@settings(max_examples=rounds(200, 5_000))
@given(st.lists(steps, max_size=40))
def test_any_history_gives_what_the_reference_gives(history: list[Step]) -> None:
    partition = TopicPartition("orders", 3)
    states = ProducerStates(partition, producer_id_expiration_ms=EXPIRATION_MS)
    naive = NaiveStates()
    now_ms = 1_000
    for step in history:
        now_ms += EXPIRATION_MS // 4
        take_step(states, naive, step, now_ms)
        assert states.end_offset == naive.end_offset
        assert states.first_unstable_offset == naive.first_unstable_offset()
        assert {entry.producer_id for entry in states} == set(naive.producers)
        for entry in states:
            producer = naive.producers[entry.producer_id]
            assert entry.producer_epoch == producer.events[-1][0]
            assert [
                (batch.first_sequence, batch.first_offset, batch.last_offset)
                for batch in entry.batches
            ] == [
                (header.base_sequence, header.base_offset, header.last_offset)
                for header in producer.recent()
            ]
