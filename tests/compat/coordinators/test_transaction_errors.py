"""What a transactional producer is told that is fenced, unknown, early, late or wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headwater.base.errors import ErrorCode
from headwater.testing.broker_process import wait_until
from tests.support.other_clients.groups.raw import committed, join_alone
from tests.support.other_clients.raw import RawConnection
from tests.support.other_clients.transactions.raw import (
    END_VERSION_1,
    OFFSETS_VERSION_1,
    OFFSETS_VERSION_2,
    PRODUCE_VERSION_1,
    PRODUCE_VERSION_2,
    Producer,
    add_offsets,
    add_partitions,
    commit_offset,
    end,
    initialise,
    new_producer,
    stable_offset,
    write,
)

MakeTopic = Callable[..., str]


@pytest.fixture
def transactional_id(new_name: Callable[[], str]) -> str:
    return new_name()


def test_initialising(connection: RawConnection, transactional_id: str) -> None:
    assert initialise(connection, "").error_code == ErrorCode.INVALID_REQUEST
    too_long = initialise(connection, transactional_id, timeout_ms=10**9)
    assert too_long.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    none = initialise(connection, transactional_id, timeout_ms=0)
    assert none.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    first = new_producer(connection, transactional_id)
    again = new_producer(connection, transactional_id)
    assert (first.epoch, again.epoch) == (0, 1)
    assert first.producer_id == again.producer_id


def test_the_epoch_grows_with_every_transaction(
    connection: RawConnection, make_topic: MakeTopic, transactional_id: str
) -> None:
    topic = make_topic()
    producer = new_producer(connection, transactional_id)
    for number in range(3):
        assert write(connection, producer, topic) == 0
        ended = end(connection, producer, commit=number != 1)
        assert ended.error_code == 0
        assert (ended.producer_id, ended.producer_epoch) == (producer.producer_id, number + 1)
        stale, producer = producer, producer._replace(epoch=ended.producer_epoch)
        marked = 2 * number + 2
        wait_until(lambda: stable_offset(connection, topic) == marked, "the mark is written")  # noqa: B023
        refused = write(connection, stale, topic, sequence=1)
        assert refused == ErrorCode.INVALID_PRODUCER_EPOCH
    # Ending again what has just ended is what a client does that has not heard of it.
    wait_until(
        lambda: end(connection, stale, commit=True).producer_epoch == producer.epoch,
        "the same is said again",
    )


def test_older_producers_add_partitions_first(
    connection: RawConnection, make_topic: MakeTopic, transactional_id: str
) -> None:
    topic, other = make_topic(), make_topic()
    producer = new_producer(connection, transactional_id)
    early = write(connection, producer, topic, version=PRODUCE_VERSION_1)
    assert early == ErrorCode.TRANSACTION_ABORTABLE
    early = write(connection, producer, topic, version=PRODUCE_VERSION_1 - 1)
    assert early == ErrorCode.INVALID_TXN_STATE
    assert add_partitions(connection, producer, topic) == [0]
    assert write(connection, producer, topic, version=PRODUCE_VERSION_1) == 0
    unknown = add_partitions(connection, producer, "no-such-topic", other)
    assert unknown == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED]
    ended = end(connection, producer, commit=True, version=END_VERSION_1)
    assert ended.error_code == 0
    wait_until(lambda: stable_offset(connection, topic) == 2, "the mark is written")
    # Their epoch stays. The end may still be on its way into the coordinator's own log.
    wait_until(lambda: add_partitions(connection, producer, topic) == [0], "the next has begun")
    assert write(connection, producer, topic, sequence=1, version=PRODUCE_VERSION_1) == 0
    assert end(connection, producer, commit=False, version=END_VERSION_1).error_code == 0
    wait_until(lambda: stable_offset(connection, topic) == 4, "the mark is written")


def test_who_is_fenced_or_unknown(
    connection: RawConnection, make_topic: MakeTopic, transactional_id: str, group: str
) -> None:
    topic = make_topic()
    first = new_producer(connection, transactional_id)
    assert write(connection, first, topic) == 0
    second = new_producer(connection, transactional_id)
    assert second.epoch > first.epoch
    fenced = ErrorCode.PRODUCER_FENCED
    assert end(connection, first, commit=True).error_code == fenced
    assert add_partitions(connection, first, topic) == [fenced]
    assert add_offsets(connection, first, group) == fenced
    assert write(connection, first, topic, sequence=1) == ErrorCode.INVALID_PRODUCER_EPOCH
    late = commit_offset(connection, first, group, topic, 1)
    assert late == ErrorCode.INVALID_PRODUCER_EPOCH
    stranger = Producer(transactional_id, second.producer_id + 1000, 0)
    mapping = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert end(connection, stranger, commit=True).error_code == mapping
    assert add_partitions(connection, stranger, topic) == [mapping]
    nobody = second._replace(transactional_id=f"{transactional_id}-unknown")
    assert end(connection, nobody, commit=True).error_code == mapping
    assert committed(connection, group, topic) == (-1, 0)


def test_ends_that_do_not_fit(
    connection: RawConnection, make_topic: MakeTopic, transactional_id: str
) -> None:
    topic = make_topic()
    producer = new_producer(connection, transactional_id)
    wrong = ErrorCode.INVALID_TXN_STATE
    assert end(connection, producer, commit=True).error_code == wrong
    assert end(connection, producer, commit=True, version=END_VERSION_1).error_code == wrong
    assert end(connection, producer, commit=False, version=END_VERSION_1).error_code == wrong
    assert add_partitions(connection, producer, topic) == [0]
    assert end(connection, producer, commit=True, version=END_VERSION_1).error_code == 0
    wait_until(
        lambda: end(connection, producer, commit=True, version=END_VERSION_1).error_code == 0,
        "an end that is repeated is no error",
    )
    # But it cannot be turned round.
    assert end(connection, producer, commit=False, version=END_VERSION_1).error_code == wrong


def test_offsets_of_stale_members(
    connection: RawConnection, make_topic: MakeTopic, transactional_id: str, group: str
) -> None:
    topic = make_topic()
    joined = join_alone(connection, group, instance_id="static")
    producer = new_producer(connection, transactional_id)
    generation, member = joined.generation_id, joined.member_id

    def attempt(*who: object, version: int, instance_id: str | None = "static") -> int:
        return commit_offset(
            connection,
            producer,
            group,
            topic,
            5,
            *who,  # type: ignore[arg-type]
            instance_id=instance_id,
            version=version,
        )

    assert add_offsets(connection, producer, group) == 0
    for version in (OFFSETS_VERSION_1, OFFSETS_VERSION_2):
        assert attempt(generation + 1, member, version=version) == ErrorCode.ILLEGAL_GENERATION
        assert attempt(generation, "nobody", version=version) == ErrorCode.FENCED_INSTANCE_ID
        unknown = attempt(generation, "nobody", version=version, instance_id=None)
        assert unknown == ErrorCode.UNKNOWN_MEMBER_ID
    assert attempt(generation, member, version=OFFSETS_VERSION_1) == 0
    assert end(connection, producer, commit=True, version=END_VERSION_1).error_code == 0
    wait_until(
        lambda: committed(connection, group, topic, stable=True) == (5, 0), "the offset is there"
    )


def test_offsets_without_a_word_before(
    connection: RawConnection, make_topic: MakeTopic, transactional_id: str, group: str
) -> None:
    """An older producer must say first that it will commit offsets, a newer one need not."""
    topic = make_topic()
    producer = new_producer(connection, transactional_id)
    early = commit_offset(connection, producer, group, topic, 5, version=OFFSETS_VERSION_1)
    assert early == ErrorCode.TRANSACTION_ABORTABLE
    early = commit_offset(connection, producer, group, topic, 5, version=OFFSETS_VERSION_1 - 1)
    assert early == ErrorCode.INVALID_TXN_STATE
    assert commit_offset(connection, producer, group, topic, 5) == 0
    assert end(connection, producer, commit=True).error_code == 0
    wait_until(
        lambda: committed(connection, group, topic, stable=True) == (5, 0), "the offset is there"
    )


def test_versions_of_produce_agree(
    connection: RawConnection, make_topic: MakeTopic, transactional_id: str
) -> None:
    """From version 12 on, writing is all that it takes to make a partition part of it."""
    topic = make_topic()
    producer = new_producer(connection, transactional_id)
    assert write(connection, producer, topic, b"first", version=PRODUCE_VERSION_2) == 0
    assert write(connection, producer, topic, b"again", sequence=1) == 0
    assert stable_offset(connection, topic) == 0
    assert end(connection, producer, commit=False).error_code == 0
    wait_until(lambda: stable_offset(connection, topic) == 3, "the mark is written")
