"""What `__transaction_state` holds: Kafka's bytes, and everything comes back from them."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.ids import TopicPartition
from headwater.coordinator.outcome import ProducerIdentity
from headwater.coordinator.stored_record import StoredRecord, encode_versioned
from headwater.coordinator.txn.transaction_metadata import (
    TransactionMetadata,
    TransactionState,
)
from headwater.coordinator.txn.transaction_record import (
    TopicPartitions,
    TransactionLogValue,
    transaction_metadata_of,
    transaction_record,
    transaction_tombstone,
    transactional_id_of,
)
from headwater.wire.codec import MalformedMessageError
from tests.support.worlds.transaction_world import TransactionWorld, orders

_producers = st.builds(ProducerIdentity, st.integers(0, 2**63 - 1), st.integers(0, 2**15 - 1))
_partitions = st.frozensets(
    st.builds(TopicPartition, st.sampled_from(["orders", "payments"]), st.integers(0, 99))
)
_metadata = st.builds(
    TransactionMetadata,
    transactional_id=st.text(min_size=1, max_size=20),
    producer=_producers,
    previous_producer_id=st.integers(-1, 2**63 - 1),
    next_producer=st.none() | _producers,
    timeout_ms=st.integers(1, 2**31 - 1),
    state=st.sampled_from(TransactionState).filter(lambda state: state.value != 0),
    partitions=_partitions,
    start_ms=st.integers(-1, 2**60),
    last_update_ms=st.integers(-1, 2**60),
    client_version=st.integers(0, 2),
)


@given(metadata=_metadata)
def test_everything_comes_back(metadata: TransactionMetadata) -> None:
    key, value = transaction_record(metadata)
    assert value is not None
    assert transactional_id_of(key) == metadata.transactional_id
    assert transaction_metadata_of(metadata.transactional_id, value) == metadata


def test_the_bytes_are_kafkas() -> None:
    metadata = TransactionMetadata(
        transactional_id="pay",
        producer=ProducerIdentity(4000, 5),
        timeout_ms=60_000,
        state=TransactionState.ONGOING,
        partitions=orders(2, 1),
        start_ms=1000,
        last_update_ms=2000,
        client_version=2,
    )
    key, value = transaction_record(metadata)
    assert key == b"\x00\x00" + b"\x00\x03pay"
    assert value == (
        b"\x00\x01"
        + struct.pack(">qhib", 4000, 5, 60_000, 1)
        + b"\x02"  # One topic, in the compact way.
        + (b"\x07orders" + b"\x03" + struct.pack(">ii", 1, 2) + b"\x00")
        + struct.pack(">qq", 2000, 1000)
        + (b"\x01" + b"\x02\x02\x00\x02")  # One tagged field: tag 2, of two bytes.
    )


def test_an_empty_one_has_no_partitions_at_all() -> None:
    metadata = TransactionMetadata(
        transactional_id="pay",
        producer=ProducerIdentity(4000, 0),
        timeout_ms=1,
        last_update_ms=3,
    )
    value = transaction_record(metadata).value
    assert value is not None
    assert (
        value[2:]
        == struct.pack(">qhib", 4000, 0, 1, 0) + b"\x00" + struct.pack(">qq", 3, -1) + b"\x00"
    )
    assert transaction_metadata_of("pay", value) == metadata


def test_the_previous_and_the_next_producer_are_tagged() -> None:
    metadata = TransactionMetadata(
        transactional_id="pay",
        producer=ProducerIdentity(4000, 32767),
        previous_producer_id=4000,
        next_producer=ProducerIdentity(4001, 0),
        timeout_ms=1,
        state=TransactionState.PREPARE_COMMIT,
        last_update_ms=3,
        client_version=2,
    )
    value = transaction_record(metadata).value
    assert value is not None
    tagged = b"\x00\x08" + struct.pack(">q", 4000) + b"\x01\x08" + struct.pack(">q", 4001)
    assert value.endswith(b"\x03" + tagged + b"\x02\x02\x00\x02")


def test_the_first_version_is_read_too() -> None:
    stored = TransactionLogValue(
        producer_id=9,
        producer_epoch=1,
        transaction_timeout_ms=5,
        transaction_status=TransactionState.PREPARE_ABORT,
        transaction_partitions=[TopicPartitions(topic="orders", partition_ids=[3])],
        transaction_last_update_timestamp_ms=6,
        transaction_start_timestamp_ms=4,
    )
    metadata = transaction_metadata_of("pay", encode_versioned(stored, 0))
    assert metadata.state is TransactionState.PREPARE_ABORT
    assert metadata.partitions == orders(3)
    assert metadata.producer == ProducerIdentity(9, 1)


def test_what_cannot_be_read_is_skipped(caplog: pytest.LogCaptureFixture) -> None:
    world = TransactionWorld()
    world.init()
    before = world.world.shard.stored_state()
    broken = encode_versioned(TransactionLogValue(transaction_status=77), 1)
    with pytest.raises(MalformedMessageError):
        transaction_metadata_of("pay", broken)
    key = transaction_tombstone("pay").key
    shard = world.world.shard
    shard.replay(StoredRecord(key, broken), 1, None, 0)
    shard.replay(StoredRecord(key, b"\x00\x07"), 2, None, 0)
    shard.replay(StoredRecord(b"\x00\x09what", b""), 3, None, 0)
    assert shard.stored_state() == before
    assert len(caplog.records) == 2
