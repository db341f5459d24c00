import random
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.checks import InvariantViolation
from headwater.base.ids import TopicPartition
from headwater.client.record_batches import RecordBatch, RecordBatches, record_size
from headwater.wire.records import Compression, decode_batch

TP = TopicPartition("orders", 0)


def make(
    batch_size_bytes: int = 1000, batch_records_max: int = 100, linger_s: float = 1.0
) -> RecordBatches:
    return RecordBatches(
        batch_size_bytes=batch_size_bytes, batch_records_max=batch_records_max, linger_s=linger_s
    )


def add(
    batches: RecordBatches, value: bytes, now_s: float = 0.0, topic_partition: TopicPartition = TP
) -> RecordBatch | None:
    return batches.add(topic_partition, 1234, b"key", value, (), now_s)


def values(batch: RecordBatch) -> list[bytes | None]:
    return [record.value for record in batch.records]


def test_a_batch_waits_for_company_and_then_goes() -> None:
    batches = make(linger_s=2.0)
    add(batches, b"one", now_s=10.0)
    add(batches, b"two", now_s=11.0)
    assert batches.take_ready(11.9, everything=False) == []
    assert batches.next_due_s(everything=False) == 12.0
    [batch] = batches.take_ready(12.0, everything=False)
    assert values(batch) == [b"one", b"two"]
    assert (batch.opened_s, batch.sent_s, batch.attempt_count) == (10.0, 12.0, 1)
    assert not batches.is_empty
    batches.settle(batch)
    assert batches.is_empty
    assert batches.buffered_bytes == 0


def test_a_full_batch_goes_at_once() -> None:
    batches = make(batch_records_max=2, linger_s=100.0)
    assert add(batches, b"one") is None
    full = add(batches, b"two")
    assert full is not None
    assert batches.next_due_s(everything=False) == 0.0
    assert batches.take_ready(0.0, everything=False) == [full]


def test_a_record_that_does_not_fit_closes_the_batch_before_it() -> None:
    batches = make(batch_size_bytes=400, linger_s=100.0)
    add(batches, b"x" * 200)
    full = add(batches, b"y" * 200)
    assert full is not None
    assert values(full) == [b"x" * 200]


def test_a_record_larger_than_a_batch_travels_alone() -> None:
    batches = make(batch_size_bytes=100, linger_s=100.0)
    add(batches, b"small")
    add(batches, b"x" * 500)
    sent = []
    for _ in range(2):
        [batch] = batches.take_ready(0.0, everything=False)
        sent.append(values(batch))
        batches.settle(batch)
    assert sent == [[b"small"], [b"x" * 500]]


def test_a_partition_has_one_batch_on_its_way_and_others_do_not_wait_for_it() -> None:
    other = TopicPartition("orders", 1)
    batches = make(batch_records_max=1)
    add(batches, b"one")
    add(batches, b"two")
    add(batches, b"elsewhere", topic_partition=other)
    taken = batches.take_ready(0.0, everything=False)
    assert [values(batch) for batch in taken] == [[b"one"], [b"elsewhere"]]
    assert batches.take_ready(0.0, everything=True) == []
    assert batches.next_due_s(everything=True) is None
    batches.settle(taken[0])
    [second] = batches.take_ready(0.0, everything=False)
    assert values(second) == [b"two"]


def test_a_batch_that_is_sent_again_goes_first_and_not_too_early() -> None:
    batches = make(batch_records_max=1)
    add(batches, b"one")
    add(batches, b"two")
    [first] = batches.take_ready(0.0, everything=False)
    batches.send_again(first, not_before_s=5.0)
    assert batches.take_ready(4.9, everything=True) == []
    assert batches.next_due_s(everything=True) == 5.0
    assert batches.take_ready(5.0, everything=False) == [first]
    assert first.attempt_count == 2


def test_a_batch_that_is_too_large_is_halved_in_order() -> None:
    batches = make()
    for number in range(5):
        add(batches, b"%d" % number)
    buffered = batches.buffered_bytes
    [batch] = batches.take_ready(0.0, everything=True)
    batches.send_in_halves(batch)
    assert batches.buffered_bytes == buffered
    sent = []
    while not batches.is_empty:
        [half] = batches.take_ready(0.0, everything=False)
        assert [record.offset for record in half.records] == list(range(len(half.records)))
        sent.append(values(half))
        batches.settle(half)
    assert sent == [[b"0", b"1"], [b"2", b"3", b"4"]]
    assert batches.buffered_bytes == 0


def test_a_batch_of_one_has_no_halves() -> None:
    batches = make()
    add(batches, b"one")
    [batch] = batches.take_ready(0.0, everything=True)
    with pytest.raises(InvariantViolation):
        batches.send_in_halves(batch)


def test_a_batch_is_settled_once() -> None:
    batches = make()
    add(batches, b"one")
    [batch] = batches.take_ready(0.0, everything=True)
    batches.settle(batch)
    with pytest.raises(InvariantViolation):
        batches.settle(batch)


def test_what_is_abandoned_is_gone() -> None:
    batches = make(batch_records_max=1)
    add(batches, b"one")
    add(batches, b"two")
    batches.take_ready(0.0, everything=True)
    assert [values(batch) for batch in batches.abandon()] == [[b"one"], [b"two"]]
    assert batches.is_empty
    assert batches.next_due_s(everything=True) is None


@given(
    key=st.none() | st.binary(max_size=300),
    value=st.none() | st.binary(max_size=300),
    headers=st.lists(st.tuples(st.text(max_size=20), st.none() | st.binary(max_size=50))),
    timestamps=st.lists(st.integers(-1, 2**63 - 1), min_size=1, max_size=5),
)
def test_the_size_is_never_underestimated(
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[str, bytes | None]],
    timestamps: list[int],
) -> None:
    batches = make(batch_size_bytes=1 << 20)
    for timestamp in timestamps:
        batches.add(TP, timestamp, key, value, tuple(headers), 0.0)
    [batch] = batches.take_ready(0.0, everything=True)
    encoded = batch.encode(Compression.NONE, None)
    assert len(encoded) <= batch.size_bytes
    assert batch.encode(Compression.NONE, None) is encoded
    assert decode_batch(encoded) == batch.records
    assert sum(map(record_size, batch.records)) == batches.buffered_bytes


@given(seed=st.integers(0, 2**32))
def test_whatever_happens_records_are_stored_in_order(seed: int) -> None:
    """A random life with failures: each partition's records end up once and in their order."""
    rng = random.Random(seed)
    partitions = [TopicPartition("orders", number) for number in range(3)]
    batches = make(batch_size_bytes=rng.choice([80, 300]), batch_records_max=rng.choice([1, 4]))
    given_values: dict[TopicPartition, list[bytes]] = defaultdict(list)
    stored: dict[TopicPartition, list[bytes | None]] = defaultdict(list)
    on_their_way: list[RecordBatch] = []
    now_s = 0.0
    for number in range(200):
        action = rng.random()
        now_s += rng.random()
        if action < 0.5:
            topic_partition = rng.choice(partitions)
            value = b"%d" % number
            given_values[topic_partition].append(value)
            add(batches, value, now_s, topic_partition)
        elif action < 0.7:
            on_their_way += batches.take_ready(now_s, everything=rng.random() < 0.3)
        elif on_their_way:
            batch = on_their_way.pop(rng.randrange(len(on_their_way)))
            fate = rng.random()
            if fate < 0.5:
                stored[batch.topic_partition] += values(batch)
                batches.settle(batch)
            elif fate < 0.8 or len(batch.records) == 1:
                batches.send_again(batch, now_s + rng.random() * 3)
            else:
                batches.send_in_halves(batch)
    for _ in range(500):
        now_s += 1.0
        for batch in [*on_their_way, *batches.take_ready(now_s, everything=True)]:
            stored[batch.topic_partition] += values(batch)
            batches.settle(batch)
        on_their_way = []
    assert batches.is_empty
    assert batches.buffered_bytes == 0
    assert stored == given_values
