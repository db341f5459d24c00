"""What a producer says of batches that are written: how many records of which time."""

from headwater.base.ids import TopicPartition
from headwater.client.columns.encoding.list_encoder import encode_records
from headwater.client.columns.encoding.record_section import RecordSection
from headwater.client.producer.batches.batch import ProduceBatch
from headwater.client.producer.batches.delivery_group import DeliveryGroup
from headwater.client.producer.batches.written_batch import written_batches
from headwater.client.producer.intake.serialized_record import SerializedRecord
from headwater.wire.records import Compression

PLACE = TopicPartition("orders", 1)


def batch_of(times_ms: list[int]) -> ProduceBatch:
    batch = ProduceBatch(PLACE, 0.0)
    for time_ms in times_ms:
        batch.add(SerializedRecord(time_ms, None, b"v", (), 1))
    return batch


def columns_of(times_ms: list[int]) -> ProduceBatch:
    count = len(times_ms)
    data = encode_records(times_ms, None, [b"v"] * count, None)
    section = RecordSection(data, count, times_ms[0], max(times_ms))
    return ProduceBatch.of_section(PLACE, section, 0.0, 0)


def test_a_batch_has_the_time_of_its_newest_record() -> None:
    for batch in (batch_of([5, 9, 7]), columns_of([5, 9, 7])):
        batch.encode(Compression.NONE, None, is_transactional=False)
        size_bytes = batch.size_bytes
        batch.succeed(0)
        assert DeliveryGroup([batch]).written() == [(PLACE, 9, 3, size_bytes)]


def test_a_broker_that_gives_times_itself_is_believed() -> None:
    batch = columns_of([5, 9])
    batch.succeed(0, 77)
    assert [each.time_ms for each in written_batches(batch)] == [77]


def test_a_batch_that_was_split_is_what_was_sent_instead() -> None:
    for batch in (batch_of([5, 9, 7, 6]), columns_of([5, 9, 7, 6])):
        batch.encode(Compression.NONE, None, is_transactional=False)
        batch.stamp()
        first, second = batch.split()
        first.succeed(0)
        second.succeed(2)
        written = written_batches(batch)
        assert [(each.time_ms, each.record_count) for each in written] == [(9, 2), (7, 2)]
