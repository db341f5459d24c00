"""Transactions of both shells on real brokers: what readers see, fencing, offsets."""

import asyncio
from functools import partial

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.admin import AdminOperations, require_all
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.consumer.membership.membership import GroupIdentity
from headwater.client.producer.async_producer import AsyncProducer
from headwater.client.producer.producer import Producer
from headwater.client.producer.transactions.coordinator_errors import TransactionAbortedError
from tests.support.async_tests import run_async
from tests.support.brokers.clusters import HEADWATER, Cluster
from tests.support.values.whole_topic import create_topic, read_topic
from tests.support.waiting import eventually


def make(cluster: Cluster, transactional_id: str, **settings: object) -> Producer:
    return Producer(
        {"bootstrap.servers": cluster.bootstrap, "transactional.id": transactional_id}
        | {name.replace("_", "."): value for name, value in settings.items()}
    )


def committed_offset(cluster: Cluster, group_id: str, place: TopicPartition) -> int | None:
    async def ask() -> int | None:
        async with ClusterConnection(cluster.bootstrap) as connection:
            listed = await AdminOperations(connection).list_group_offsets(
                [group_id], partitions=[place], require_stable=True
            )
            found = require_all(listed)[group_id].get(place)
            return None if found is None else found.offset

    return asyncio.run(ask())


def test_only_what_is_committed_is_read(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    with make(cluster, cluster.new_name("id")) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        futures = [producer.send(topic, b"a%d" % n, partition=n % 2) for n in range(6)]
        producer.flush()
        assert read_topic(cluster.bootstrap, topic) == {0: [], 1: []}
        producer.commit_transaction()
        assert [future.result(0).offset for future in futures] == [0, 0, 1, 1, 2, 2]
        committed = {0: [b"a0", b"a2", b"a4"], 1: [b"a1", b"a3", b"a5"]}
        # Apache Kafka ends a transaction a moment after it said so.
        assert eventually(lambda: read_topic(cluster.bootstrap, topic) == committed)
        producer.begin_transaction()
        producer.send(topic, b"b", partition=0)
        producer.flush()
        producer.abort_transaction()
        assert read_topic(cluster.bootstrap, topic) == committed
        everything = read_topic(cluster.bootstrap, topic, is_committed=False)
        assert everything[0] == [b"a0", b"a2", b"a4", b"b"]
        producer.begin_transaction()
        producer.send(topic, b"c", partition=1)
        producer.commit_transaction()
    last = [b"a1", b"a3", b"a5", b"c"]
    assert eventually(lambda: read_topic(cluster.bootstrap, topic)[1] == last)


def test_the_block_commits_or_aborts(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name(), 1)
    with make(cluster, cluster.new_name("id"), linger_ms=10_000) as producer:
        producer.init_transactions()
        for number in range(5):
            with producer.transaction():
                producer.send(topic, b"%d" % number, partition=0)
        with pytest.raises(ZeroDivisionError), producer.transaction():
            lost = producer.send(topic, b"lost", partition=0)
            raise ZeroDivisionError
        # It was still in the accumulator.
        assert isinstance(lost.exception(0), TransactionAbortedError)
        with producer.transaction():
            pass
    found = read_topic(cluster.bootstrap, topic, 1, is_committed=False)[0]
    assert found == [b"0", b"1", b"2", b"3", b"4"]


@run_async
async def test_the_same_on_asyncio(cluster: Cluster) -> None:
    topic = await asyncio.to_thread(create_topic, cluster.bootstrap, cluster.new_name(), 1)
    async with AsyncProducer(
        bootstrap_servers=cluster.bootstrap, transactional_id=cluster.new_name("id")
    ) as producer:
        await producer.init_transactions()
        async with producer.transaction():
            await producer.send(topic, b"kept", partition=0)
        with pytest.raises(ZeroDivisionError):
            async with producer.transaction():
                await producer.send(topic, b"dropped", partition=0)
                raise ZeroDivisionError
    read = partial(eventually, lambda: read_topic(cluster.bootstrap, topic, 1)[0])
    assert await asyncio.to_thread(read) == [b"kept"]


def test_a_newer_instance_fences_the_older_one(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name(), 1)
    transactional_id = cluster.new_name("id")
    with make(cluster, transactional_id) as older, make(cluster, transactional_id) as newer:
        older.init_transactions()
        older.begin_transaction()
        older.send(topic, b"half done", partition=0)
        older.flush()
        newer.init_transactions()
        # What the older one left open is aborted, and it gets no further.
        zombie = older.send(topic, b"zombie", partition=0)
        with pytest.raises(KafkaError) as caught:
            older.commit_transaction()
        assert caught.value.code is ErrorCode.PRODUCER_FENCED
        failure = zombie.exception(0)
        assert isinstance(failure, KafkaError)
        assert failure.code is ErrorCode.PRODUCER_FENCED
        with pytest.raises(KafkaError) as caught:
            older.abort_transaction()
        assert caught.value.code is ErrorCode.PRODUCER_FENCED
        for call in (older.begin_transaction, lambda: older.send(topic, b"again")):
            with pytest.raises(KafkaError) as caught:
                call()
            assert caught.value.code is ErrorCode.PRODUCER_FENCED
        with newer.transaction():
            newer.send(topic, b"new", partition=0)
    assert eventually(lambda: read_topic(cluster.bootstrap, topic, 1)[0]) == [b"new"]


def test_offsets_are_committed_with_the_transaction(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    group_id = cluster.new_name("group")
    place = TopicPartition(topic, 0)
    with make(cluster, cluster.new_name("id")) as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send(topic, b"out", partition=1)
            producer.send_offsets_to_transaction({place: 7}, GroupIdentity(group_id))
        assert committed_offset(cluster, group_id, place) == 7
        producer.begin_transaction()
        producer.send_offsets_to_transaction({place: 8}, GroupIdentity(group_id))
        producer.abort_transaction()
        assert committed_offset(cluster, group_id, place) == 7
        # Who is no member of the group any more cannot commit for it.
        producer.begin_transaction()
        stranger = GroupIdentity(group_id, generation_id=3, member_id="stranger")
        with pytest.raises(KafkaError) as caught:
            producer.send_offsets_to_transaction({place: 9}, stranger)
        assert caught.value.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)
        with pytest.raises(KafkaError, match="has to be aborted"):
            producer.commit_transaction()
        producer.abort_transaction()
        with producer.transaction():
            producer.send_offsets_to_transaction({place: 10}, GroupIdentity(group_id))
    assert committed_offset(cluster, group_id, place) == 10


def test_a_refused_record_leaves_only_the_abort(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name(), 1)
    settings = {"max_request_size": 4 << 20, "buffer_memory": 16 << 20}
    with make(cluster, cluster.new_name("id"), **settings) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"small", partition=0)
        producer.flush()
        large = producer.send(topic, bytes(2 << 20), partition=0)
        with pytest.raises(KafkaError) as caught:
            producer.commit_transaction()
        assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
        error = large.exception(0)
        assert error is not None
        assert error.code is ErrorCode.MESSAGE_TOO_LARGE
        with pytest.raises(KafkaError, match="has to be aborted"):
            producer.send(topic, b"more")
        producer.abort_transaction()
        with producer.transaction():
            producer.send(topic, b"next", partition=0)
    assert eventually(lambda: read_topic(cluster.bootstrap, topic, 1)[0]) == [b"next"]


def test_wrong_order_of_calls(cluster: Cluster) -> None:
    with make(cluster, cluster.new_name("id")) as producer:
        for call in (producer.begin_transaction, producer.commit_transaction):
            with pytest.raises(KafkaError) as caught:
                call()
            assert caught.value.code is ErrorCode.INVALID_TXN_STATE
        producer.init_transactions()
        topic = create_topic(cluster.bootstrap, cluster.new_name(), 1)
        with pytest.raises(KafkaError, match="outside of a transaction"):
            producer.send(topic, b"value")
        with pytest.raises(KafkaError) as caught:
            producer.init_transactions()
        assert caught.value.code is ErrorCode.INVALID_TXN_STATE


def test_two_phase_commit_needs_a_broker_that_has_it(cluster: Cluster) -> None:
    settings = {"transaction_two_phase_commit_enable": True}
    with make(cluster, cluster.new_name("id"), **settings) as producer:
        if cluster.kind == HEADWATER:
            producer.init_transactions()
            return
        with pytest.raises(KafkaError) as caught:
            producer.init_transactions()
        assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION
