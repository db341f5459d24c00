"""Transactions that are prepared by one instance and decided by another."""

from collections.abc import Iterator

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.producer.idempotence.identity import PreparedTransactionState
from headwater.client.producer.producer import Producer
from headwater.testing.running_broker import RunningBroker
from tests.support.values.whole_topic import create_topic, read_topic


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with RunningBroker() as broker:
        yield broker


def make(broker: RunningBroker, transactional_id: str) -> Producer:
    return Producer(
        bootstrap_servers=broker.bootstrap,
        transactional_id=transactional_id,
        transaction_two_phase_commit_enable=True,
    )


def prepare(broker: RunningBroker, transactional_id: str, topic: str) -> str:
    """Leave a prepared transaction behind."""
    with make(broker, transactional_id) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        future = producer.send(topic, b"prepared", partition=0)
        state = producer.prepare_transaction()
        assert future.done()
        for call in (producer.begin_transaction, lambda: producer.send(topic, b"more")):
            with pytest.raises(KafkaError) as caught:
                call()
            assert caught.value.code is ErrorCode.INVALID_TXN_STATE
    return str(state)


@pytest.mark.parametrize("is_commit", [True, False])
def test_another_instance_completes_it(broker: RunningBroker, is_commit: bool) -> None:
    transactional_id = f"other-{is_commit}"
    topic = create_topic(broker.bootstrap, f"completed-{is_commit}", 1)
    state = prepare(broker, transactional_id, topic)
    assert read_topic(broker.bootstrap, topic, 1)[0] == []
    with make(broker, transactional_id) as producer:
        producer.init_transactions(keep_prepared=True)
        producer.complete_transaction(state if is_commit else PreparedTransactionState())
        with producer.transaction():
            producer.send(topic, b"next", partition=0)
    expected = [b"prepared", b"next"] if is_commit else [b"next"]
    assert read_topic(broker.bootstrap, topic, 1)[0] == expected


def test_it_is_aborted_unless_kept(broker: RunningBroker) -> None:
    topic = create_topic(broker.bootstrap, "not-kept", 1)
    prepare(broker, "forgetful", topic)
    with make(broker, "forgetful") as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send(topic, b"next", partition=0)
    assert read_topic(broker.bootstrap, topic, 1)[0] == [b"next"]


def test_nothing_is_prepared(broker: RunningBroker) -> None:
    topic = create_topic(broker.bootstrap, "nothing-prepared", 1)
    with make(broker, "fresh") as producer:
        producer.init_transactions(keep_prepared=True)
        with pytest.raises(KafkaError) as caught:
            producer.complete_transaction(PreparedTransactionState(7, 1))
        assert caught.value.code is ErrorCode.INVALID_TXN_STATE
        with producer.transaction():
            producer.send(topic, b"next", partition=0)
        # The same instance may decide as well.
        producer.begin_transaction()
        producer.send(topic, b"decided", partition=0)
        producer.complete_transaction(producer.prepare_transaction())
        producer.begin_transaction()
        producer.send(topic, b"dropped", partition=0)
        producer.prepare_transaction()
        producer.abort_transaction()
    assert read_topic(broker.bootstrap, topic, 1)[0] == [b"next", b"decided"]


def test_a_broker_may_refuse_it() -> None:
    settings = {"transaction.two.phase.commit.enable": "false"}
    with RunningBroker(settings=settings) as strict, make(strict, "refused") as producer:
        with pytest.raises(KafkaError) as caught:
            producer.init_transactions()
        assert caught.value.code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_what_is_prepared_can_be_asked(broker: RunningBroker) -> None:
    topic = create_topic(broker.bootstrap, "asked", 1)
    state = prepare(broker, "asked", topic)
    with make(broker, "asked") as producer:
        assert not producer.prepared_transaction.exists
        producer.init_transactions(keep_prepared=True)
        assert str(producer.prepared_transaction) == state
        producer.abort_transaction()
        assert not producer.prepared_transaction.exists


def test_the_text_of_a_state() -> None:
    state = PreparedTransactionState(4711, 3)
    assert str(state) == "4711:3"
    assert PreparedTransactionState.parse("4711:3") == state
    assert PreparedTransactionState.parse("") == PreparedTransactionState()
    assert not PreparedTransactionState.parse("").exists
    for text in ("4711", "a:b", "1:2:3", "01:2", " 1:2"):
        with pytest.raises(ValueError, match="does not name a prepared transaction"):
            PreparedTransactionState.parse(text)
