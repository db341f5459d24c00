"""A broker that is killed and started again in the middle: the same promises."""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.proxies.proxied_broker import (
    FLUSH_TIMEOUT_S,
    PARTITION_COUNT,
    ProxiedBroker,
    send_for,
)
from tests.support.tiers import rounds
from tests.support.traffic.transaction_ledger import TransactionLedger
from tests.support.values.whole_topic import create_topic, read_topic
from tests.support.waiting import eventually

SEEDS = range(rounds(1, 2))
CRASH_COUNT = rounds(1, 2)
#: Apache Kafka may take long to come back on a busy machine.
RETURN_TIMEOUT_S = 180.0


@contextmanager
def crashes(proxied: ProxiedBroker, seed: int) -> Iterator[threading.Event]:
    """Kill the broker some times, and start it again; the event is set when that is over."""
    generator = random.Random(seed)
    is_over = threading.Event()
    errors: list[BaseException] = []

    def crash() -> None:
        try:
            for _ in range(CRASH_COUNT):
                time.sleep(generator.uniform(0.2, 0.6))
                proxied.broker.kill()
                time.sleep(generator.uniform(0, 0.3))
                proxied.broker.start()
        except BaseException as error:
            errors.append(error)
        finally:
            is_over.set()

    thread = threading.Thread(target=crash)
    thread.start()
    try:
        yield is_over
    finally:
        thread.join()
    assert errors == []


@pytest.mark.parametrize("seed", SEEDS)
def test_each_record_once_and_in_order(proxied: ProxiedBroker, seed: int) -> None:
    topic = create_topic(proxied.bootstrap, proxied.new_name("crashed"), PARTITION_COUNT)
    with proxied.make_producer() as producer, crashes(proxied, seed) as is_over:
        sent = send_for(producer, topic, seed, 1.0)
        assert is_over.wait(RETURN_TIMEOUT_S)
        late = producer.send(topic, b"late", partition=0)
        producer.flush(FLUSH_TIMEOUT_S)
        assert late.exception(0) is None
    sent[0].values.append(b"late")
    found = read_topic(proxied.bootstrap, topic, PARTITION_COUNT)
    for partition, records in sent.items():
        assert all(future.exception(0) is None for future in records.futures)
        assert found[partition] == records.values


@pytest.mark.parametrize("seed", SEEDS)
def test_transactions_are_all_or_nothing(proxied: ProxiedBroker, seed: int) -> None:
    topic = create_topic(proxied.bootstrap, proxied.new_name("crashed"), PARTITION_COUNT)
    ledger = TransactionLedger(topic, PARTITION_COUNT, seed)
    with proxied.make_producer(transactional_id=proxied.new_name("id")) as producer:
        producer.init_transactions()
        with crashes(proxied, seed) as is_over:
            while not is_over.is_set():
                ledger.transact(producer)
        for _ in range(10):
            ledger.transact(producer)
    assert len(ledger.committed) > 3
    assert eventually(
        lambda: not ledger.faults(read_topic(proxied.bootstrap, topic, PARTITION_COUNT))
    )
