"""A broker that clients reach only through a proxy with faults, and producers to try it with."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from headwater.client.producer.batches.delivery_future import DeliveryFuture
from headwater.client.producer.producer import Producer
from headwater.testing.apache_kafka import KafkaNode
from headwater.testing.broker_process import BrokerProcess, free_port
from tests.support.kafka.node import small_node
from tests.support.other_clients.brokers import HEADWATER
from tests.support.proxies.fault_proxy import FaultProxy
from tests.support.proxies.proxy_thread import HOST

PARTITION_COUNT = 3
FLUSH_TIMEOUT_S = 60.0


class ProxiedBroker:
    def __init__(self, broker: BrokerProcess | KafkaNode, proxy: FaultProxy) -> None:
        self.broker = broker
        self.proxy = proxy
        self._name_count = 0

    @property
    def bootstrap(self) -> str:
        return self.proxy.bootstrap

    def new_name(self, stem: str) -> str:
        self._name_count += 1
        return f"{stem}-{self._name_count}"

    def make_producer(self, **settings: object) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self.bootstrap,
                # Short, for what is swallowed; and many small batches.
                "request.timeout.ms": 1000,
                "linger.ms": 0,
                "batch.size": 300,
                "retry.backoff.ms": 20,
            }
            | {name.replace("_", "."): value for name, value in settings.items()}
        )


@contextmanager
def proxied_broker(kind: str, directory: Path) -> Iterator[ProxiedBroker]:
    """The broker calls itself by the proxy's address, or clients would walk past it."""
    proxy_port = free_port()
    settings = {"advertised.listeners": f"PLAINTEXT://{HOST}:{proxy_port}"}
    broker: BrokerProcess | KafkaNode
    if kind == HEADWATER:
        broker = BrokerProcess(directory, settings=settings)
    else:
        broker = small_node(directory, settings)
    with broker, FaultProxy(proxy_port, int(broker.bootstrap.split(":")[1])) as proxy:
        yield ProxiedBroker(broker, proxy)


class Sent(NamedTuple):
    """What was sent to a partition, in order, and what came of it."""

    values: list[bytes]
    futures: list[DeliveryFuture]

    @property
    def acknowledged(self) -> list[bytes]:
        pairs = zip(self.values, self.futures, strict=True)
        return [value for value, future in pairs if future.exception(0) is None]


def send_for(producer: Producer, topic: str, seed: int, seconds: float) -> dict[int, Sent]:
    """Send to all partitions for so long."""
    generator = random.Random(seed)
    sent = {number: Sent([], []) for number in range(PARTITION_COUNT)}
    number = 0
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        partition = generator.randrange(PARTITION_COUNT)
        value = b"%d" % number
        number += 1
        sent[partition].values.append(value)
        sent[partition].futures.append(producer.send(topic, value, partition=partition))
        if generator.random() < 0.05:
            time.sleep(generator.uniform(0, 0.02))
    return sent
