"""Repetitions across rolls, restarts, crashes and truncations, against all that was ever sent."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.sim.campaigns.logs import (
    DIRECTORY,
    NOW_MS,
    append,
    batch_of,
    end_transaction,
    new_disk,
    offsets_of,
    open_log,
)
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.errors import OutOfOrderSequenceError
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog
from headwater.storage.producers.entry import SEQUENCE_MAX
from headwater.storage.truncation import truncate_to
from tests.support.tiers import rounds

IN_FLIGHT_MAX = 5
PRODUCER_IDS = (7, 8, 9)
#: The one whose batches are all in transactions.
TRANSACTIONAL_ID = 9


@dataclass(frozen=True)
class SentBatch:
    data: bytes
    first_offset: int
    next_offset: int
    timestamp: int


@dataclass
class ProducerModel:
    """Every batch of the producer's epoch, and where it goes on."""

    producer_id: int
    epoch: int = 0
    next_sequence: int = SEQUENCE_MAX - 12  # So that numbers soon start over.
    batches: list[SentBatch] = field(default_factory=list)

    def next_batch(self, count: int, timestamp: int) -> bytes:
        batch = batch_of(
            *[b"v"] * count,
            timestamp=timestamp,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.next_sequence,
            transactional=self.producer_id == TRANSACTIONAL_ID,
        )
        self.next_sequence = (self.next_sequence + count) & SEQUENCE_MAX
        return batch

    def cut(self, end_offset: int) -> None:
        """The log lost what lies behind: the producer goes on with the first batch that it lost."""
        kept = [batch for batch in self.batches if batch.next_offset <= end_offset]
        lost = sum(b.next_offset - b.first_offset for b in self.batches[len(kept) :])
        self.next_sequence = (self.next_sequence - lost) & SEQUENCE_MAX
        self.batches = kept


class Scenario:
    """A log that is written to and broken, beside its producers."""

    def __init__(self, seed: int, config: LogConfig) -> None:
        self.random = random.Random(seed)
        self.config = config
        self.disk: FaultyDisk = new_disk(seed)
        self.log: PartitionLog = open_log(self.disk, DIRECTORY, config)
        self.producers = {each: ProducerModel(each) for each in PRODUCER_IDS}
        self.now_ms = NOW_MS

    def send(self, producer_id: int, counts: list[int]) -> None:
        """Batches that are in flight together; their answers may be lost."""
        producer = self.producers[producer_id]
        for count in counts:
            self.now_ms += 10
            data = producer.next_batch(count, self.now_ms)
            result = self.log.append_as_leader(data, leader_epoch=0, now_ms=self.now_ms)
            assert not result.is_duplicate
            sent = SentBatch(
                data, result.base_offset, result.last_offset + 1, self.now_ms + count - 1
            )
            producer.batches.append(sent)

    def repeat(self, producer_id: int, places: list[int]) -> None:
        """Send earlier batches again, counted from the last; the five last are recognised."""
        producer = self.producers[producer_id]
        end_offset = self.log.log_end_offset
        for place in places:
            if place >= len(producer.batches):
                continue
            sent = producer.batches[-1 - place]
            if place >= IN_FLIGHT_MAX:
                with pytest.raises(OutOfOrderSequenceError):
                    self.log.append_as_leader(sent.data, leader_epoch=0, now_ms=self.now_ms)
                continue
            again = self.log.append_as_leader(sent.data, leader_epoch=0, now_ms=self.now_ms)
            assert again.is_duplicate
            assert (again.base_offset, again.last_offset + 1) == (
                sent.first_offset,
                sent.next_offset,
            )
            if producer_id != TRANSACTIONAL_ID:  # In a snapshot a marker's time is the batch's.
                assert again.log_append_time_ms == sent.timestamp
        assert self.log.log_end_offset == end_offset

    def raise_epoch(self, producer_id: int) -> None:
        self.end_transaction(producer_id)
        producer = self.producers[producer_id]
        producer.epoch += 1
        producer.next_sequence = 0
        producer.batches = []

    def end_transaction(self, producer_id: int) -> None:
        producer = self.producers[producer_id]
        if producer_id == TRANSACTIONAL_ID and producer.batches:
            commit = self.random.random() < 0.5
            end_transaction(self.log, producer_id, commit=commit, producer_epoch=producer.epoch)

    def close(self) -> None:
        self.log.close()
        self.open(is_clean=True)

    def kill(self) -> None:
        self.disk = self.disk.after_process_end()
        self.open(is_clean=False)

    def lose_power(self) -> None:
        if self.random.random() < 0.5:
            self.log.flush()
        self.disk = self.disk.crash(self.random)
        self.open(is_clean=False)

    def truncate(self) -> None:
        starts = [b.first_offset for each in self.producers.values() for b in each.batches[-8:]]
        if starts:
            truncate_to(self.log, self.random.choice(starts), self.now_ms)
            self.cut_model()

    def open(self, *, is_clean: bool) -> None:
        recovery_point = self.log.recovery_point
        self.log = open_log(
            self.disk,
            DIRECTORY,
            self.config,
            is_clean=is_clean,
            recovery_point=recovery_point,
            now_ms=self.now_ms,
        )
        self.cut_model()

    def cut_model(self) -> None:
        for producer in self.producers.values():
            producer.cut(self.log.log_end_offset)

    def check(self) -> None:
        for producer in self.producers.values():
            self.repeat(producer.producer_id, list(range(6, -1, -1)))
            for batch in producer.batches:
                assert offsets_of_batch(self.log, batch) == [
                    *range(batch.first_offset, batch.next_offset)
                ]
        offsets = offsets_of(self.log)
        assert offsets == sorted(set(offsets))


def offsets_of_batch(log: PartitionLog, batch: SentBatch) -> list[int]:
    return [o for o in offsets_of(log) if batch.first_offset <= o < batch.next_offset]


producer_ids = st.sampled_from(PRODUCER_IDS)
windows = st.lists(st.integers(1, 3), min_size=1, max_size=IN_FLIGHT_MAX)
steps = st.one_of(
    st.tuples(st.just("send"), producer_ids, windows),
    st.tuples(st.just("send"), producer_ids, windows),
    st.tuples(st.just("repeat"), producer_ids, st.lists(st.integers(0, 7), max_size=6)),
    st.tuples(st.sampled_from(["end_transaction", "raise_epoch", "other"]), producer_ids),
    st.tuples(st.sampled_from(["roll", "close", "close", "kill", "lose_power", "truncate"])),
)


def take_step(scenario: Scenario, step: tuple[object, ...]) -> None:
    match step:
        case ("send", int(producer_id), list(counts)):
            scenario.send(producer_id, counts)
        case ("repeat", int(producer_id), list(places)):
            scenario.repeat(producer_id, places)
        case ("end_transaction", int(producer_id)):
            scenario.end_transaction(producer_id)
        case ("raise_epoch", int(producer_id)):
            scenario.raise_epoch(producer_id)
        case ("other", _):
            append(scenario.log, b"plain", now_ms=scenario.now_ms)
        case ("roll",):
            scenario.log.roll(scenario.now_ms)
        case ("close",):
            scenario.close()
        case ("kill",):
            scenario.kill()
        case ("lose_power",):
            scenario.lose_power()
        case ("truncate",):
            scenario.truncate()
        case unknown:
            raise ValueError(unknown)


@settings(max_examples=rounds(150, 2_000))
@given(
    st.lists(steps, max_size=30),
    st.integers(0, 2**32),
    st.sampled_from([200, 700, 1 << 20]),
    st.sampled_from([1, 150, 4096]),
)
def test_the_last_five_batches_are_stored_once_whatever_happens(
    history: list[tuple[object, ...]], seed: int, segment_bytes: int, index_interval_bytes: int
) -> None:
    config = LogConfig(segment_bytes=segment_bytes, index_interval_bytes=index_interval_bytes)
    scenario = Scenario(seed, config)
    for step in history:
        take_step(scenario, step)
    scenario.check()
