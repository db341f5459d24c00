"""Through a network with faults: no loss with acks=all, nothing twice or in another order with
idempotence, transactions all or nothing; and the judge who says so sees what is wrong."""

import time

import pytest

from headwater.client.producer.producer import Producer
from tests.support.logs.delivery_check import doubles, losses
from tests.support.proxies.fault_proxy import FaultChances
from tests.support.proxies.proxied_broker import (
    FLUSH_TIMEOUT_S,
    PARTITION_COUNT,
    ProxiedBroker,
    Sent,
    send_for,
)
from tests.support.tiers import rounds
from tests.support.traffic.transaction_ledger import TransactionLedger
from tests.support.values.whole_topic import create_topic, read_topic
from tests.support.waiting import eventually

SEEDS = range(rounds(1, 6))
FAULTS_S = rounds(2, 4)


def send_with_faults(
    proxied: ProxiedBroker,
    producer: Producer,
    topic: str,
    seed: int,
    seconds: float = FAULTS_S,
    chances: FaultChances | None = None,
) -> dict[int, Sent]:
    """Send while there are faults; when they have ended, everything has to come to its end."""
    proxied.proxy.begin_faults(seed, chances)
    try:
        sent = send_for(producer, topic, seed, seconds)
    finally:
        proxied.proxy.end_faults()
    producer.flush(FLUSH_TIMEOUT_S)
    return sent


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_lost_with_acks_all(proxied: ProxiedBroker, seed: int) -> None:
    topic = create_topic(proxied.bootstrap, proxied.new_name("kept"), PARTITION_COUNT)
    with proxied.make_producer(enable_idempotence=False, acks="all") as producer:
        sent = send_with_faults(proxied, producer, topic, seed)
    assert proxied.proxy.counts["cut"] > 0
    found = read_topic(proxied.bootstrap, topic, PARTITION_COUNT)
    for partition, records in sent.items():
        assert len(records.acknowledged) == len(records.values) > 50
        assert losses(records.acknowledged, found[partition]) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_each_record_once_and_in_order_with_idempotence(proxied: ProxiedBroker, seed: int) -> None:
    topic = create_topic(proxied.bootstrap, proxied.new_name("once"), PARTITION_COUNT)
    with proxied.make_producer() as producer:
        sent = send_with_faults(proxied, producer, topic, seed)
    assert proxied.proxy.counts["cut"] > 0
    found = read_topic(proxied.bootstrap, topic, PARTITION_COUNT)
    for partition, records in sent.items():
        assert len(records.acknowledged) == len(records.values) > 50
        assert found[partition] == records.values


def test_the_judge_sees_what_happens_without_idempotence(proxied: ProxiedBroker) -> None:
    faults: list[str] = []
    with proxied.make_producer(enable_idempotence=False) as producer:
        for seed in range(20):
            topic = create_topic(proxied.bootstrap, proxied.new_name("twice"), PARTITION_COUNT)
            send_with_faults(proxied, producer, topic, seed, 0.5, FaultChances(cut=0.1))
            found = read_topic(proxied.bootstrap, topic, PARTITION_COUNT)
            faults += [fault for values in found.values() for fault in doubles(values)]
            if faults:
                break
    assert faults


@pytest.mark.parametrize("seed", SEEDS)
def test_transactions_are_all_or_nothing(proxied: ProxiedBroker, seed: int) -> None:
    topic = create_topic(proxied.bootstrap, proxied.new_name("whole"), PARTITION_COUNT)
    ledger = TransactionLedger(topic, PARTITION_COUNT, seed)
    with proxied.make_producer(transactional_id=proxied.new_name("id")) as producer:
        producer.init_transactions()
        proxied.proxy.begin_faults(seed)
        try:
            end_s = time.monotonic() + FAULTS_S
            while time.monotonic() < end_s:
                ledger.transact(producer)
        finally:
            proxied.proxy.end_faults()
        for _ in range(3):
            ledger.transact(producer)
    assert sum(proxied.proxy.counts.values()) > 0
    assert len(ledger.committed) > 3
    assert eventually(
        lambda: not ledger.faults(read_topic(proxied.bootstrap, topic, PARTITION_COUNT))
    )
