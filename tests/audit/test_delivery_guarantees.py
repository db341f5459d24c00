"""The stories of docs/delivery-guarantees.md, as the audit tells them: each with its exact counts.

What only a client could know, such as what it never sent, the brokers' audit does not show, and
these tests say so too.
"""

import time
from collections.abc import Iterator

import pytest

from headwater import Consumer, Producer, TopicPartition
from headwater.audit.group_sum import GroupSum
from headwater.audit.topic_book import TopicBook, make_book
from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.admin import Admin
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.environment import in_environment
from headwater.testing import broker
from headwater.testing.running_broker import RunningBroker
from headwater.wire.records import Record, encode_batch
from tests.support.audit.audit_rows import check_stretches, led_rows
from tests.support.other_clients.users import take
from tests.support.proxies.produce_proxy import Fate, ProduceProxy

_COUNT = 10
_ONE_BY_ONE: dict[str, object] = {
    "max.in.flight.requests.per.connection": 1,
    "retry.backoff.ms": 10,
    "reconnect.backoff.ms": 10,
}


@pytest.fixture(scope="module")
def audited() -> Iterator[RunningBroker]:
    with broker(settings={"offsets.topic.num.partitions": "1"}) as running:
        yield running


@pytest.fixture
def topic(audited: RunningBroker) -> str:
    """A topic that the audit knows of before anything is written."""
    name = audited.create_topic()
    look(audited)
    return name


def look(running: RunningBroker) -> None:
    async def look() -> None:
        running._serving().context.audit_publisher.look()

    running._run(look())


def publish(running: RunningBroker) -> None:
    """What is a matter of minutes otherwise."""
    look(running)
    publisher = running._serving().context.audit_publisher
    running._run(publisher.publish_all())
    assert publisher.failed_rounds == 0


def book_of(running: RunningBroker, topic: str, log_start: int = 0) -> TopicBook:
    publish(running)
    rows = led_rows(running._serving().context.partitions)
    check_stretches(rows)
    starts = {0: log_start}
    return make_book(topic, rows, from_ms=0, to_ms=2**62, now_ms=0, log_starts=starts)


def only_group(book: TopicBook) -> GroupSum:
    [group] = book.groups
    return group


def send(running: RunningBroker, topic: str, count: int = _COUNT, age_ms: int = 0) -> None:
    with Producer(bootstrap_servers=running.bootstrap) as producer:
        for number in range(count):
            now_ms = time.time_ns() // 1_000_000
            producer.send(topic, b"%d" % number, timestamp_ms=now_ms - age_ms).result(30)


def send_with_a_lost_answer(running: RunningBroker, topic: str, *, is_idempotent: bool) -> None:
    with (
        ProduceProxy(running.bootstrap, ()) as proxy,
        in_environment(Producer, proxy.environment)(
            {**_ONE_BY_ONE, "enable.idempotence": is_idempotent},
            bootstrap_servers=proxy.bootstrap,
            batch_size=1,
            linger_ms=0,
        ) as producer,
    ):
        producer.send(topic, b"0").result(30)
        proxy.fates.extend([Fate.PASS, Fate.LOSE_ANSWER])
        for number in range(1, _COUNT):
            producer.send(topic, b"%d" % number).result(30)
        assert proxy.fates == []


def a_consumer(running: RunningBroker, group: str, topic: str) -> Consumer:
    consumer = Consumer(
        bootstrap_servers=running.bootstrap,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    consumer.assign([TopicPartition(topic, 0)])
    return consumer


def commit(consumer: Consumer, topic: str, offset: int) -> None:
    consumer.commit({TopicPartition(topic, 0): OffsetAndMetadata(offset)})


# -- producers -----------------------------------------------------------------------------------


def test_with_idempotence_a_lost_answer_is_one_duplicate_that_was_refused(
    audited: RunningBroker, topic: str
) -> None:
    send_with_a_lost_answer(audited, topic, is_idempotent=True)
    book = book_of(audited, topic)
    assert (book.count, book.duplicates_refused, book.gaps_refused) == (_COUNT, 1, 0)
    assert book.alarms == [], "nothing is wrong: it was refused"


def test_without_it_what_is_doubled_came_in_and_nobody_but_its_sender_knows(
    audited: RunningBroker, topic: str
) -> None:
    send_with_a_lost_answer(audited, topic, is_idempotent=False)
    book = book_of(audited, topic)
    assert (book.count, book.duplicates_refused) == (_COUNT + 1, 0)


def test_a_job_that_starts_over_comes_in_again(audited: RunningBroker, topic: str) -> None:
    send(audited, topic, 7)
    send(audited, topic, 10)
    book = book_of(audited, topic)
    assert (book.count, book.duplicates_refused) == (17, 0)


def test_a_batch_whose_predecessor_was_lost_is_a_gap(audited: RunningBroker, topic: str) -> None:
    async def append(sequence: int) -> None:
        partition = audited._serving().context.partitions.get(topic, 0)
        now_ms = time.time_ns() // 1_000_000
        batch = encode_batch(
            [Record(0, now_ms, b"k", b"v")],
            producer_id=4711,
            producer_epoch=0,
            base_sequence=sequence,
        )
        partition.append(bytearray(batch), acks=1, now_ms=now_ms)

    audited._run(append(0))
    for _ in range(2):
        with pytest.raises(KafkaError) as refused:
            audited._run(append(2))
        assert refused.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    book = book_of(audited, topic)
    assert (book.count, book.gaps_refused, book.duplicates_refused) == (1, 2, 0)
    assert book.alarms == ["2 batches came with a gap in front, and were refused."]
    # Where nothing else comes, that is told all the same.
    for number in range(3, 6):
        with pytest.raises(KafkaError):
            audited._run(append(2))
        book = book_of(audited, topic)
        assert (book.count, book.gaps_refused) == (1, number)


def test_what_a_transaction_gave_up_is_aborted(audited: RunningBroker, topic: str) -> None:
    with Producer(bootstrap_servers=audited.bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        for is_kept, count in ((True, 6), (False, 4)):
            producer.begin_transaction()
            for _ in range(count):
                producer.send(topic, b"x")
            producer.flush()
            producer.commit_transaction() if is_kept else producer.abort_transaction()
    book = book_of(audited, topic)
    assert (book.count, book.stored_count) == (10, 6)


def test_what_waited_in_a_spool_is_late(audited: RunningBroker, topic: str) -> None:
    send(audited, topic, 3, age_ms=600_000)
    send(audited, topic, 5)
    # A record's arrival is known for what the leader saw come.
    book = book_of(audited, topic)
    assert (book.count, sum(bucket.late_count for bucket in book.buckets)) == (8, 3)
    assert max(bucket.lateness_ms_max for bucket in book.buckets) >= 599_000


# -- consumers -----------------------------------------------------------------------------------


def test_what_was_deleted_before_it_was_read_is_missing(audited: RunningBroker, topic: str) -> None:
    send(audited, topic)
    group = f"{topic}-group"
    with a_consumer(audited, group, topic) as consumer:
        commit(consumer, topic, 4)
        publish(audited)
        with Admin(bootstrap_servers=audited.bootstrap) as admin:
            admin.delete_records({TopicPartition(topic, 0): 7})
        missing = book_of(audited, topic, log_start=7)
        assert only_group(missing).missing_count == 3
        alarms = [f"3 records were deleted before {group} had committed past them."]
        assert missing.alarms == alarms
        # That the group goes on behind the gap does not bring them back.
        commit(consumer, topic, 9)
        book = book_of(audited, topic, log_start=7)
        found = only_group(book)
        assert (found.out_count, found.missing_count) == (6, 3)
        assert book.alarms == alarms


def test_what_a_group_had_committed_past_may_be_deleted(audited: RunningBroker, topic: str) -> None:
    send(audited, topic)
    with a_consumer(audited, f"{topic}-group", topic) as consumer:
        for offset in (4, 7):
            commit(consumer, topic, offset)
        publish(audited)
        with Admin(bootstrap_servers=audited.bootstrap) as admin:
            admin.delete_records({TopicPartition(topic, 0): 7})
        publish(audited)
        # Going back in front of it and on again makes nothing of it missing.
        for offset in (5, 10):
            commit(consumer, topic, offset)
        book = book_of(audited, topic, log_start=7)
    assert (only_group(book).out_count, only_group(book).missing_count) == (10, 0)


def test_what_was_deleted_before_it_was_counted_is_said(audited: RunningBroker, topic: str) -> None:
    send(audited, topic, 2)
    publish(audited)
    send(audited, topic, 5)
    with Admin(bootstrap_servers=audited.bootstrap) as admin:
        admin.delete_records({TopicPartition(topic, 0): 6})
    book = book_of(audited, topic, log_start=6)
    assert (book.count, book.uncounted_offsets) == (3, 4)
    assert book.alarms == ["4 offsets were deleted before they were counted."]


def test_a_commit_that_goes_back_doubles_exactly_what_it_went_back_by(
    audited: RunningBroker, topic: str
) -> None:
    send(audited, topic)
    with a_consumer(audited, f"{topic}-group", topic) as consumer:
        for offset in (8, 5, 10, 9):
            commit(consumer, topic, offset)
        group = only_group(book_of(audited, topic))
    assert (group.out_count, group.doubled_count, group.went_back_count) == (10, 4, 2)


def test_who_dies_between_processing_and_committing_is_behind(
    audited: RunningBroker, topic: str
) -> None:
    send(audited, topic)
    with a_consumer(audited, f"{topic}-group", topic) as first:
        take(first, _COUNT)
        commit(first, topic, 6)
    book = book_of(audited, topic)
    group = only_group(book)
    assert (group.out_count, book.stored_count - group.out_count) == (6, 4)
    with a_consumer(audited, f"{topic}-group", topic) as second:
        # These it processes for the second time; no commit went back, so only it can know.
        assert [record.offset for record in take(second, 4)] == [6, 7, 8, 9]
        commit(second, topic, 10)
    group = only_group(book_of(audited, topic))
    assert (group.out_count, group.doubled_count, group.missing_count) == (10, 0, 0)


def test_who_commits_first_is_through_and_only_it_can_know_what_it_lost(
    audited: RunningBroker, topic: str
) -> None:
    send(audited, topic)
    with a_consumer(audited, f"{topic}-group", topic) as consumer:
        commit(consumer, topic, _COUNT)
    book = book_of(audited, topic)
    group = only_group(book)
    assert (group.out_count, group.missing_count, group.doubled_count) == (_COUNT, 0, 0)
    assert book.alarms == []


def test_a_restart_and_no_fault_show_nothing(audited: RunningBroker, topic: str) -> None:
    send(audited, topic)
    audited.restart()
    look(audited)
    send(audited, topic)
    with a_consumer(audited, f"{topic}-group", topic) as consumer:
        take(consumer, 2 * _COUNT)
        consumer.commit()
    book = book_of(audited, topic)
    assert (book.count, only_group(book).out_count) == (2 * _COUNT, 2 * _COUNT)
    assert book.alarms == []
    assert (book.duplicates_refused, only_group(book).doubled_count) == (0, 0)
