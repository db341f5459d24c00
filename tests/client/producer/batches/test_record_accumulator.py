import threading

import hypothesis.strategies as st
from hypothesis import given

from headwater.base.ids import TopicPartition
from headwater.client.columns.encoding.record_section import RecordSection
from headwater.client.errors import ClientClosedError
from headwater.client.producer.batches.accumulator import RecordAccumulator
from headwater.client.producer.batches.batch import ProduceBatch
from headwater.client.producer.batches.partition_queue import PartitionQueue
from headwater.client.producer.intake.serialized_record import SerializedRecord

PARTITION = TopicPartition("orders", 3)


def accumulator(
    *, batch_size_bytes: int = 1000, buffer_bytes: int = 3000, linger_s: float = 0.005
) -> RecordAccumulator:
    return RecordAccumulator(
        batch_size_bytes=batch_size_bytes,
        linger_s=linger_s,
        buffer_bytes=buffer_bytes,
        delivery_timeout_s=120.0,
    )


def fill(accumulated: RecordAccumulator, count: int, size_bytes: int = 100) -> PartitionQueue:
    queue = accumulated.queue(PARTITION)
    for number in range(count):
        record = SerializedRecord(number, None, b"%d" % number, (), size_bytes)
        assert put(accumulated, queue, record)
    return queue


def put(accumulated: RecordAccumulator, queue: PartitionQueue, record: SerializedRecord) -> bool:
    """Tells whether there was room."""
    future = accumulated.append(queue, record) or accumulated.append_to_new(queue, record, 1.0)
    return future is not None


def test_records_share_batches_of_the_size_that_is_set() -> None:
    accumulated = accumulator()
    queue = fill(accumulated, 20)
    assert [batch.record_count for batch in queue.waiting] == [9, 9, 2]
    assert queue.open is queue.waiting[-1]


def test_a_record_larger_than_a_batch_has_one_of_its_own() -> None:
    accumulated = accumulator()
    queue = fill(accumulated, 1, size_bytes=2500)
    assert [batch.record_count for batch in queue.waiting] == [1]
    assert accumulated.available_bytes == 3000 - 2561


def test_batch_size_0_makes_each_record_a_batch() -> None:
    queue = fill(accumulator(batch_size_bytes=0), 3)
    assert [batch.record_count for batch in queue.waiting] == [1, 1, 1]


def test_memory_is_reserved_by_the_batch_and_freed_at_its_end() -> None:
    accumulated = accumulator()
    queue = fill(accumulated, 27)
    assert accumulated.available_bytes == 0
    record = SerializedRecord(5, None, b"value", (), 100)
    assert not put(accumulated, queue, record)
    batch = accumulated.take(queue)
    assert accumulated.available_bytes == 0
    accumulated.off_the_wire(batch)
    batch.succeed(0)
    assert accumulated.available_bytes == 1000
    assert put(accumulated, queue, record)


def test_who_waits_for_memory_is_told_in_turn() -> None:
    accumulated = accumulator()
    queue = fill(accumulated, 27)
    told: list[str] = []
    accumulated.when_memory(100, lambda: told.append("first"))
    accumulated.when_memory(100, lambda: told.append("second"))
    assert accumulated.is_urgent
    batch = accumulated.take(queue)
    accumulated.off_the_wire(batch)
    batch.succeed(0)
    assert told == ["first"]
    assert accumulated.waiter_count == 1


def test_who_waits_though_there_is_memory_is_told_at_once() -> None:
    told: list[str] = []
    accumulator().when_memory(100, lambda: told.append("now"))
    assert told == ["now"]


def test_one_who_stops_waiting_lets_the_next_have_its_turn() -> None:
    accumulated = accumulator()
    queue = fill(accumulated, 27)
    told: list[str] = []

    def first() -> None:
        told.append("first")

    accumulated.when_memory(100, first)
    accumulated.when_memory(100, lambda: told.append("second"))
    batch = accumulated.take(queue)
    accumulated.off_the_wire(batch)
    batch.succeed(0)
    accumulated.forget_waiter(first)
    assert told == ["first", "second"]


def test_keys_and_headers_take_no_place_until_there_are_some() -> None:
    accumulated = accumulator()
    queue = fill(accumulated, 2)
    batch = queue.open
    assert batch is not None
    assert batch.keys is None
    assert batch.headers is None
    headers = (("name", b"content"),)
    accumulated.append(queue, SerializedRecord(5, b"key", b"value", headers, 100))
    accumulated.append(queue, SerializedRecord(6, None, None, (), 100))
    assert batch.keys == [None, None, b"key", None]
    assert batch.headers == [(), (), (("name", b"content"),), ()]


def test_a_section_closes_the_open_batch_so_that_order_is_kept() -> None:
    accumulated = accumulator()
    queue = fill(accumulated, 2)
    batch = accumulated.add_section(queue, RecordSection(b"bytes", 4, 10, 20), 1.0)
    assert batch is not None
    assert batch.record_count == 4
    fill(accumulated, 1)
    assert [each.record_count for each in queue.waiting] == [2, 4, 1]


@given(st.permutations(range(6)), st.integers(0, 3))
def test_what_is_put_back_gets_its_old_place(order: list[int], unsent_count: int) -> None:
    accumulated = accumulator(batch_size_bytes=0, buffer_bytes=1 << 20)
    queue = fill(accumulated, 6 + unsent_count)
    taken = [accumulated.take(queue) for _ in range(6)]
    for index in order:
        accumulated.off_the_wire(taken[index])
        accumulated.put_back([taken[index]])
    found = [batch.timestamps[0] for batch in queue.waiting]
    assert found == list(range(6 + unsent_count))


def test_parts_of_a_batch_come_back_in_their_order() -> None:
    accumulated = accumulator(buffer_bytes=1 << 20)
    queue = fill(accumulated, 9 + 9)
    first, second = (accumulated.take(queue) for _ in range(2))
    accumulated.off_the_wire(first)
    parts = first.split()
    accumulated.put_back(parts)
    accumulated.off_the_wire(second)
    accumulated.put_back([second])
    again = accumulated.take(queue)
    assert again is parts[0]
    accumulated.off_the_wire(again)
    accumulated.put_back([again])
    assert list(queue.waiting) == [parts[0], parts[1], second]


def test_the_end_of_its_parts_is_the_end_of_a_batch() -> None:
    told: list[bool] = []
    batch = ProduceBatch(PARTITION, 1.0)
    for number in range(5):
        value = b"%d" % number
        batch.add(
            SerializedRecord(
                number, None, value, (), 20, lambda _, error: told.append(error is None)
            )
        )
    first, second = batch.split()
    second.fail(ClientClosedError())
    assert not batch.is_done
    first.succeed(70)
    assert batch.is_done
    assert told == [True, True, False, False, False]
    assert batch.outcome(1) == ("orders", 3, 71, 1)
    assert isinstance(batch.outcome(4), ClientClosedError)


def test_many_threads_append_without_losing_a_record() -> None:
    accumulated = accumulator(buffer_bytes=1 << 30)
    queue = accumulated.queue(PARTITION)

    def work(thread: int) -> None:
        for number in range(500):
            value = b"%d-%d" % (thread, number)
            assert put(accumulated, queue, SerializedRecord(1, None, value, (), 50))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    values = [value for batch in queue.waiting for value in batch.values]
    assert len(set(values)) == len(values) == 2000
    for thread_number in range(4):
        own = [
            value for value in values if value is not None and value[0:1] == b"%d" % thread_number
        ]
        assert own == [b"%d-%d" % (thread_number, number) for number in range(500)]
