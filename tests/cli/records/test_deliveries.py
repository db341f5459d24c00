from headwater.cli.records.deliveries import Deliveries
from headwater.client.kafka_errors import MessageTooLargeError, NotEnoughReplicasError
from headwater.client.producer.record_metadata import RecordMetadata


def test_records_are_counted_and_the_first_failure_is_kept() -> None:
    deliveries = Deliveries()
    first, second = MessageTooLargeError("Too large."), NotEnoughReplicasError("Too few.")
    for error in (None, first, None, second, None):
        metadata = RecordMetadata("orders", 0, 0, 0) if error is None else None
        deliveries.note(metadata, error)
    assert (deliveries.written_count, deliveries.failed_count) == (3, 2)
    assert deliveries.failure is first
