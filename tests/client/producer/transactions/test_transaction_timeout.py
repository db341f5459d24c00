"""A transaction that stays open for too long: the coordinator ends it, and the producer with it."""

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.kafka_errors import InvalidProducerEpochError
from headwater.client.producer.producer import Producer
from headwater.testing.running_broker import RunningBroker
from tests.support.values.whole_topic import create_topic, read_topic
from tests.support.waiting import eventually

SETTINGS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "50"}


def make(broker: RunningBroker, **settings: object) -> Producer:
    return Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "slow"} | settings)


def is_ended(broker: RunningBroker, topic: str) -> bool:
    """Whether the last stable offset is past the record: it can only be aborted."""
    with make(broker, **{"transactional.id": "probe"}) as probe:
        probe.init_transactions()
        with probe.transaction():
            probe.send(topic, b"probe", partition=0)
    return b"probe" in read_topic(broker.bootstrap, topic, 1)[0]


def test_a_transaction_that_times_out() -> None:
    with RunningBroker(settings=SETTINGS) as broker:
        topic = create_topic(broker.bootstrap, "slow", 1)
        with make(broker, **{"transaction.timeout.ms": 200}) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send(topic, b"too late", partition=0)
            producer.flush()

            assert eventually(lambda: is_ended(broker, topic))
            with pytest.raises(KafkaError) as caught:
                producer.commit_transaction()
            # To a coordinator it looks like the repetition of an abort, but it is no abort.
            fatal = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_TXN_STATE)
            assert caught.value.code in fatal
            with pytest.raises(KafkaError, match="not usable any more"):
                producer.begin_transaction()
        with make(broker) as producer:
            producer.init_transactions()
            with producer.transaction():
                producer.send(topic, b"in time", partition=0)
        found = read_topic(broker.bootstrap, topic, 1)[0]
        assert b"too late" not in found
        assert found[-1] == b"in time"


def test_who_sends_more_hears_of_it_and_goes_on_after_an_abort() -> None:
    """A leader cannot tell it from a fence; the coordinator can."""
    with RunningBroker(settings=SETTINGS) as broker:
        topic = create_topic(broker.bootstrap, "slow", 1)
        with make(broker, **{"transaction.timeout.ms": 200}) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send(topic, b"too late", partition=0).result(30)
            assert eventually(lambda: is_ended(broker, topic))
            with pytest.raises(InvalidProducerEpochError):
                producer.send(topic, b"later still", partition=0).result(30)
            with pytest.raises(InvalidProducerEpochError, match="has to be aborted"):
                producer.commit_transaction()
            producer.abort_transaction()
            with producer.transaction():
                producer.send(topic, b"again", partition=0)
        found = read_topic(broker.bootstrap, topic, 1)[0]
        assert found[-1] == b"again"
        assert set(found) == {b"probe", b"again"}
