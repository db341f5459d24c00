"""What a broker accepts and refuses of a producer, in requests that no client sends on purpose."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from crc32c import crc32c

from headwater.base.errors import ErrorCode
from headwater.wire.messages.fetch import FetchRequest
from headwater.wire.messages.init_producer_id import InitProducerIdRequest
from headwater.wire.messages.produce import ProduceRequest
from headwater.wire.records import Compression, Record, encode_batch
from tests.support.other_clients.brokers import BrokerUnderTest
from tests.support.other_clients.contract import TIMEOUT_S
from tests.support.other_clients.raw import RawConnection, fetch_topic, produce_request

MakeTopic = Callable[..., str]

MESSAGE_BYTES_MAX = 1_048_588


@pytest.fixture
def connection(broker: BrokerUnderTest) -> Iterator[RawConnection]:
    with RawConnection(broker.bootstrap) as opened:
        yield opened


def now_ms() -> int:
    return int(time.time() * 1000)


def numbered(
    producer_id: int, sequence: int, *, count: int = 1, epoch: int = 0, value: bytes = b"v"
) -> bytes:
    records = [Record(number, now_ms(), None, value) for number in range(count)]
    return encode_batch(
        records, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
    )


def new_producer_id(connection: RawConnection) -> int:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    answer = connection.ask(request, 4)
    deadline_s = time.monotonic() + TIMEOUT_S
    # A broker of Apache Kafka has to fetch its first ids, and says so until it has some.
    while answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        assert time.monotonic() < deadline_s
        answer = connection.ask(request, 4)
    assert (answer.error_code, answer.producer_epoch) == (0, 0)
    producer_id: int = answer.producer_id
    return producer_id


def end_offset(connection: RawConnection, topic: str) -> int:
    answer = connection.fetch(FetchRequest(topics=[fetch_topic(topic, 0)]))
    return answer.responses[0].partitions[0].high_watermark


def test_producer_ids_are_never_given_twice(connection: RawConnection) -> None:
    found = [new_producer_id(connection) for _ in range(20)]
    assert len(set(found)) == 20 and min(found) >= 0


def test_the_same_batch_again(connection: RawConnection, make_topic: MakeTopic) -> None:
    """Any of the last five batches may come again; each is acknowledged with the offset it has."""
    topic = make_topic()
    producer_id = new_producer_id(connection)
    batches = [numbered(producer_id, sequence * 2, count=2) for sequence in range(6)]
    for number, batch in enumerate(batches):
        assert connection.produce(topic, batch).base_offset == number * 2
    for number in range(1, 6):
        again = connection.produce(topic, batches[number])
        assert (again.error_code, again.base_offset) == (0, number * 2)
    assert end_offset(connection, topic) == 12
    # Older than five: the broker no longer knows where it lies.
    forgotten = connection.produce(topic, batches[0])
    assert forgotten.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert end_offset(connection, topic) == 12


@pytest.mark.parametrize(
    ("sequence", "epoch", "error"),
    [
        (3, 0, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (1, 1, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (0, 1, ErrorCode.NONE),
        (2, 0, ErrorCode.NONE),
    ],
)
def test_sequences_and_epochs(
    sequence: int,
    epoch: int,
    error: ErrorCode,
    connection: RawConnection,
    make_topic: MakeTopic,
) -> None:
    topic = make_topic()
    producer_id = new_producer_id(connection)
    assert connection.produce(topic, numbered(producer_id, 0, count=2)).error_code == 0
    answer = connection.produce(topic, numbered(producer_id, sequence, epoch=epoch))
    assert answer.error_code == error
    assert end_offset(connection, topic) == (3 if error == ErrorCode.NONE else 2)


def test_an_older_epoch_is_fenced(connection: RawConnection, make_topic: MakeTopic) -> None:
    topic = make_topic()
    producer_id = new_producer_id(connection)
    assert connection.produce(topic, numbered(producer_id, 0, epoch=3)).error_code == 0
    answer = connection.produce(topic, numbered(producer_id, 1, epoch=2))
    assert answer.error_code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_the_largest_batch(connection: RawConnection, make_topic: MakeTopic) -> None:
    """The limit counts the whole batch with its header, and is the last size that is allowed."""
    topic = make_topic()
    overhead = len(encode_batch([Record(0, 0, None, b"x" * 1_000_000)])) - 1_000_000

    def batch_of(size: int) -> bytes:
        batch = encode_batch([Record(0, now_ms(), None, b"x" * (size - overhead))])
        assert len(batch) == size
        return batch

    assert connection.produce(topic, batch_of(MESSAGE_BYTES_MAX)).error_code == 0
    refused = connection.produce(topic, batch_of(MESSAGE_BYTES_MAX + 1))
    assert refused.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert end_offset(connection, topic) == 1


GOOD = encode_batch([Record(0, now_ms(), None, b"value")])


def patched(position: int, value: bytes, *, sign: bool = True) -> bytes:
    """The good batch with other bytes somewhere, and with a checksum that fits them."""
    batch = bytearray(GOOD)
    batch[position : position + len(value)] = value
    if sign:
        batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    return bytes(batch)


@pytest.mark.parametrize(
    ("batch", "error"),
    [
        pytest.param(GOOD, 0, id="a good one"),
        pytest.param(patched(72, b"?", sign=False), ErrorCode.CORRUPT_MESSAGE, id="checksum"),
        pytest.param(GOOD[:0], ErrorCode.INVALID_RECORD, id="nothing"),
        pytest.param(GOOD[:8], ErrorCode.INVALID_RECORD, id="a base offset"),
        pytest.param(GOOD[:61], ErrorCode.INVALID_RECORD, id="a header"),
        pytest.param(GOOD[:-1], ErrorCode.INVALID_RECORD, id="cut short"),
        pytest.param(GOOD + GOOD, ErrorCode.INVALID_RECORD, id="two"),
        pytest.param(patched(16, b"\3"), ErrorCode.CORRUPT_MESSAGE, id="a magic of the future"),
        pytest.param(patched(8, bytes(4), sign=False), ErrorCode.CORRUPT_MESSAGE, id="length 0"),
        pytest.param(patched(0, b"\0\0\0\0\0\0\0\5"), ErrorCode.INVALID_RECORD, id="base offset"),
        pytest.param(patched(23, b"\0\0\0\5"), ErrorCode.INVALID_RECORD, id="last offset delta"),
        pytest.param(patched(57, b"\0\0\0\0"), ErrorCode.INVALID_RECORD, id="count 0"),
        pytest.param(patched(57, b"\0\0\0\5"), ErrorCode.INVALID_RECORD, id="count 5"),
        pytest.param(patched(21, b"\0\x20"), ErrorCode.INVALID_RECORD, id="a control batch"),
        # It would open a transaction that nobody could end.
        pytest.param(
            patched(21, b"\0\x10"),
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            id="transactional",
        ),
        # Bits that a producer has no business with, and that do no harm.
        pytest.param(patched(21, b"\2\0"), 0, id="an unknown attribute"),
        pytest.param(patched(21, b"\0\x08"), 0, id="append time"),
    ],
)
def test_odd_batches(
    batch: bytes, error: int, connection: RawConnection, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    answer = connection.produce(topic, batch)
    assert answer.error_code == error
    assert answer.base_offset == (-1 if error else 0)
    assert end_offset(connection, topic) == (0 if error else 1)


def test_zstd_needs_a_version_that_knows_it(
    connection: RawConnection, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    batch = encode_batch([Record(0, now_ms(), None, b"v")], compression=Compression.ZSTD)
    error = connection.produce(topic, batch, 6).error_code
    assert error == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert connection.produce(topic, batch, 7).error_code == 0


def test_the_records_at_fault_are_named(connection: RawConnection, make_topic: MakeTopic) -> None:
    topic = make_topic(cleanup_policy="compact")
    keys = [b"a", None, b"b", None]
    records = [Record(number, now_ms(), key, b"v") for number, key in enumerate(keys)]
    answer = connection.produce(topic, encode_batch(records))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [each.batch_index for each in answer.record_errors] == [1, 3]
    assert answer.error_message


def test_times_too_far_ahead(connection: RawConnection, make_topic: MakeTopic) -> None:
    topic = make_topic()
    ahead = encode_batch([Record(0, now_ms() + 7_200_000, None, b"v")])
    answer = connection.produce(topic, ahead)
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [each.batch_index for each in answer.record_errors] == [0]
    assert answer.error_message


def test_unknown_partitions_and_acks(connection: RawConnection, make_topic: MakeTopic) -> None:
    topic = make_topic()
    batch = encode_batch([Record(0, now_ms(), None, b"v")])
    request = produce_request(topic, batch)
    request.topic_data[0].partition_data[0].index = 5
    [answer] = connection.ask(request, 9).responses[0].partition_responses
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    [answer] = (
        connection.ask(produce_request(topic, batch, acks=2), 9).responses[0].partition_responses
    )
    assert answer.error_code == ErrorCode.INVALID_REQUIRED_ACKS


def test_more_in_sync_replicas_wanted_than_there_are(
    connection: RawConnection, make_topic: MakeTopic
) -> None:
    """A topic cannot ask for more than it has replicas, so all of them are enough."""
    topic = make_topic(min_insync_replicas=2)
    batch = encode_batch([Record(0, now_ms(), None, b"v")])
    assert connection.produce(topic, batch).error_code == 0


def test_acks_none_gets_no_answer(connection: RawConnection, make_topic: MakeTopic) -> None:
    topic = make_topic()
    batch = encode_batch([Record(0, now_ms(), None, b"v")])
    connection.send(produce_request(topic, batch, acks=0), 9)
    # The next answer on the connection belongs to the next request.
    assert connection.produce(topic, batch).base_offset == 1


def test_an_error_without_acks_closes_the_connection(
    connection: RawConnection, make_topic: MakeTopic
) -> None:
    """A producer that gets no answers has no other way to learn that something is wrong."""
    topic = make_topic(cleanup_policy="compact")
    batch = encode_batch([Record(0, now_ms(), None, b"v")])
    connection.send(produce_request(topic, batch, acks=0), 9)
    assert connection.is_closed_by_peer()


def test_pipelined_requests_are_answered_in_order(
    connection: RawConnection, make_topic: MakeTopic
) -> None:
    """Also when the first waits for more data and the others could be answered at once."""
    topic = make_topic()
    parked = connection.send(
        FetchRequest(topics=[fetch_topic(topic, 0)], max_wait_ms=300, min_bytes=1_000_000), 12
    )
    batch = encode_batch([Record(0, now_ms(), None, b"v")])
    later = [connection.send(produce_request(topic, batch), 9) for _ in range(3)]
    assert connection.receive(FetchRequest.API_KEY, 12)[0] == parked
    for number, correlation_id in enumerate(later):
        received, answer = connection.receive(ProduceRequest.API_KEY, 9)
        assert received == correlation_id
        assert answer.responses[0].partition_responses[0].base_offset == number
