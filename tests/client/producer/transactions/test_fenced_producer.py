"""A producer whose transactional id another one has: it hears so at once, in one word."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from headwater import AsyncProducer, KafkaError, Producer, errors
from headwater.base.errors import ErrorCode
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.membership.membership import GroupIdentity
from headwater.client.kafka_errors import error_for
from headwater.client.producer.sending.verdicts import Verdict
from headwater.client.producer.transactions.states import State
from headwater.testing.running_broker import RunningBroker
from headwater.wire.messages.end_txn import EndTxnRequest
from tests.support.async_tests import run_async
from tests.support.brokers.clusters import Cluster
from tests.support.fakes.manager_conversation import (
    GROUP,
    PLACE,
    Batch,
    Conversation,
    transactional,
)
from tests.support.values.whole_topic import create_topic
from tests.support.waiting import eventually

CODES = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
TOLD = "another one has taken over the transactional.id '{}'.* Close this producer"


def check_is_fenced(conversation: Conversation) -> None:
    manager = conversation.manager
    operations = manager.operations
    for call in (
        operations.begin,
        operations.commit,
        operations.abort,
        lambda: operations.send_offsets({PLACE: OffsetAndMetadata(1)}, GROUP),
        lambda: manager.check_may_send(PLACE),
    ):
        with pytest.raises(errors.ProducerFencedError, match=TOLD.format("payments")):
            call()
    assert not manager.asks(conversation.now_s + 100)


# -- what coordinators answer --------------------------------------------------------------------


@pytest.mark.parametrize("code", CODES)
def test_when_it_is_initialized(code: ErrorCode) -> None:
    conversation = transactional()
    completion = conversation.manager.operations.initialize()
    conversation.answer(code)
    assert isinstance(completion.error, errors.ProducerFencedError)
    check_is_fenced(conversation)


@pytest.mark.parametrize("code", CODES)
def test_when_a_partition_is_added(code: ErrorCode) -> None:
    conversation = transactional(is_version_2=False)
    conversation.begin()
    conversation.manager.note_partition(PLACE)
    conversation.answer(code)
    check_is_fenced(conversation)


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("is_version_2", [True, False])
def test_when_offsets_are_sent(code: ErrorCode, is_version_2: bool) -> None:
    conversation = transactional(is_version_2=is_version_2)
    conversation.begin()
    sent = conversation.manager.operations.send_offsets({PLACE: OffsetAndMetadata(1)}, GROUP)
    if not is_version_2:
        conversation.answer()
    conversation.answer(code)
    assert isinstance(sent.error, errors.ProducerFencedError)
    check_is_fenced(conversation)


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("ends_with", ["commit", "abort"])
def test_when_the_transaction_is_ended(code: ErrorCode, ends_with: str) -> None:
    conversation = transactional()
    conversation.begin()
    conversation.write(batch := Batch())
    conversation.manager.acknowledged(batch, 0)
    completion = getattr(conversation.manager.operations, ends_with)()
    conversation.answer(code)
    assert isinstance(completion.error, errors.ProducerFencedError)
    check_is_fenced(conversation)


# -- what leaders answer -------------------------------------------------------------------------


def test_a_leader_that_knows_of_the_fence() -> None:
    conversation = transactional()
    conversation.begin()
    conversation.write(batch := Batch())
    refused = error_for(ErrorCode.PRODUCER_FENCED, "orders-0: refused.")
    verdict = conversation.manager.failed(batch, refused, conversation.now_s)
    assert verdict is Verdict.FAIL
    assert "'payments'" in str(conversation.manager.told(refused))
    check_is_fenced(conversation)


def doubted(*, is_version_2: bool) -> Conversation:
    """A leader finds the epoch too old, which has two reasons."""
    conversation = transactional(is_version_2=is_version_2)
    conversation.begin()
    conversation.write(batch := Batch())
    refused = error_for(ErrorCode.INVALID_PRODUCER_EPOCH, "orders-0: refused.")
    verdict = conversation.manager.failed(batch, refused, conversation.now_s)
    # Nobody hears of it before the coordinator has said which.
    assert verdict is Verdict.RETRY
    assert not conversation.manager.may_resend(batch)
    assert not conversation.manager.may_drain(PLACE)
    conversation.manager.check_may_send(PLACE)
    conversation.manager.is_flushed = lambda: False
    return conversation


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("is_version_2", [True, False])
@pytest.mark.parametrize("is_committing", [True, False])
def test_the_coordinator_says_that_it_is_fenced(
    code: ErrorCode, is_version_2: bool, is_committing: bool
) -> None:
    conversation = doubted(is_version_2=is_version_2)
    commit = conversation.manager.operations.commit() if is_committing else None
    ask = conversation.answer(code)
    assert isinstance(ask.request, EndTxnRequest)
    assert not ask.request.committed
    if commit is not None:
        assert isinstance(commit.error, errors.ProducerFencedError)
    check_is_fenced(conversation)
    [told] = conversation.aborted_with
    assert isinstance(told, errors.ProducerFencedError)


def test_the_coordinator_says_that_it_took_too_long() -> None:
    """The transaction is over, the producer is not."""
    conversation = doubted(is_version_2=True)
    manager = conversation.manager
    epoch = manager.identity.epoch
    assert isinstance(conversation.answer().request, EndTxnRequest)
    assert manager.state is State.ABORTABLE_ERROR
    with pytest.raises(errors.InvalidProducerEpochError, match="has to be aborted"):
        manager.operations.commit()
    assert not manager.asks(conversation.now_s)
    assert [each.code for each in conversation.aborted_with] == [ErrorCode.INVALID_PRODUCER_EPOCH]
    manager.is_flushed = lambda: True
    aborted = manager.operations.abort()
    # It was aborted by the question.
    assert not manager.asks(conversation.now_s)
    assert aborted.result() is None
    assert manager.identity.epoch == epoch + 1
    manager.operations.begin()
    conversation.write(again := Batch())
    manager.acknowledged(again, 0)
    committed = manager.operations.commit()
    conversation.answer()
    assert committed.result() is None


def test_an_abort_while_the_coordinator_is_asked() -> None:
    conversation = doubted(is_version_2=True)
    manager = conversation.manager
    ask = conversation.next_ask()
    aborted = manager.operations.abort()
    ask.on_answer(conversation.coordinator.answer(ask.request), conversation.now_s)
    manager.is_flushed = lambda: True
    assert not manager.asks(conversation.now_s)
    assert aborted.result() is None
    assert manager.state is State.READY


# -- two producers of one id ---------------------------------------------------------------------


def pair(bootstrap: str, topic: str, name: str) -> tuple[Producer, Producer]:
    """Two of one id, of which the first has written and knows nothing of the second yet."""
    older, newer = (Producer(bootstrap_servers=bootstrap, transactional_id=name) for _ in range(2))
    older.init_transactions()
    older.begin_transaction()
    older.send(topic, b"half done").result(30)
    newer.init_transactions()
    return older, newer


def test_everything_says_so_after_the_first_record(cluster: Cluster) -> None:
    topic, name = create_topic(cluster.bootstrap, cluster.new_name(), 1), cluster.new_name("id")
    older, newer = pair(cluster.bootstrap, topic, name)
    with newer, older:
        told = TOLD.format(name)
        with pytest.raises(errors.ProducerFencedError, match=told):
            older.send(topic, b"too late").result(30)
        calls: list[Callable[[], object]] = [
            lambda: older.send(topic, b"again"),
            lambda: older.send("another", b"again"),
            older.flush,
            older.commit_transaction,
            older.abort_transaction,
            older.begin_transaction,
            lambda: older.send_offsets_to_transaction({(topic, 0): 1}, GroupIdentity("g")),  # type: ignore[dict-item]
        ]
        for call in calls:
            with pytest.raises(errors.ProducerFencedError, match=told):
                call()


@pytest.mark.parametrize("call", ["commit_transaction", "flush", "abort_transaction"])
def test_the_first_call_says_so(cluster: Cluster, call: str) -> None:
    topic, name = create_topic(cluster.bootstrap, cluster.new_name(), 1), cluster.new_name("id")
    older, newer = pair(cluster.bootstrap, topic, name)
    with newer, older:
        older.send(topic, b"too late")
        with pytest.raises(errors.ProducerFencedError, match=TOLD.format(name)):
            getattr(older, call)()


def test_a_send_that_waits_wakes_up() -> None:
    heard: list[BaseException] = []

    def send_to_a_missing_topic() -> None:
        try:
            older.send("missing", b"waits")
        except KafkaError as error:
            heard.append(error)

    with RunningBroker(settings={"auto.create.topics.enable": "false"}) as broker:
        topic = create_topic(broker.bootstrap, "there", 1)
        older, newer = pair(broker.bootstrap, topic, "id")
        with newer, older:
            waiting = threading.Thread(target=send_to_a_missing_topic)
            waiting.start()
            assert older._threaded is not None
            finder = older._threaded.core.topics
            assert eventually(lambda: finder.waiter_count)
            older.send(topic, b"too late")
            waiting.join(50)  # Less than max.block.ms.
            assert not waiting.is_alive()
    assert [type(error) for error in heard] == [errors.ProducerFencedError]


@run_async
async def test_with_asyncio(cluster: Cluster) -> None:
    name = cluster.new_name("id")
    topic = await asyncio.to_thread(create_topic, cluster.bootstrap, cluster.new_name(), 1)
    settings = {"bootstrap.servers": cluster.bootstrap, "transactional.id": name}
    async with AsyncProducer(settings) as older, AsyncProducer(settings) as newer:
        await older.init_transactions()
        await older.begin_transaction()
        await older.send_and_wait(topic, b"half done")
        await newer.init_transactions()
        told = TOLD.format(name)
        with pytest.raises(errors.ProducerFencedError, match=told):
            await older.send_and_wait(topic, b"too late")
        with pytest.raises(errors.ProducerFencedError, match=told):
            await older.send(topic, b"again")
        for call in (older.flush, older.commit_transaction, older.begin_transaction):
            with pytest.raises(errors.ProducerFencedError, match=told):
                await call()
