"""Producers of the clients in Python, as `TrafficWriter` uses them: acknowledged, idempotent.

Each adapter hands a record to its client and says later, once, how that ended. Retries are left to
the clients, which have two minutes for a record and three seconds for a request, where both can be
told apart.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, Protocol

from headwater import Producer
from tests.support.other_clients.contract import require_package

DELIVERY_MS = 120_000
REQUEST_MS = 3_000
LINGER_MS = 5
BACKOFF_MAX_MS = 300
FLUSH_S = DELIVERY_MS / 1000

#: Told None when the record is acknowledged, or else what is wrong.
OnDone = Callable[[object | None], None]


class SendingClient(Protocol):
    """One producer with acks=all."""

    name: str

    def __init__(self, bootstrap: str, *, is_idempotent: bool = True) -> None: ...

    def send(self, topic: str, partition: int, value: bytes, on_done: OnDone) -> None: ...

    def flush(self) -> None:
        """Wait until everything that was sent has ended one way or the other."""

    def close(self) -> None: ...


class HeadwaterSending:
    name = "own-client"

    def __init__(self, bootstrap: str, *, is_idempotent: bool = True) -> None:
        self._producer = Producer(
            bootstrap_servers=bootstrap,
            acks="all",
            enable_idempotence=is_idempotent,
            delivery_timeout_ms=DELIVERY_MS,
            request_timeout_ms=REQUEST_MS,
            linger_ms=LINGER_MS,
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=BACKOFF_MAX_MS,
            retry_backoff_ms=50,
        )

    def send(self, topic: str, partition: int, value: bytes, on_done: OnDone) -> None:
        self._producer.send(
            topic, value, partition=partition, on_delivery=lambda _, error: on_done(error)
        )

    def flush(self) -> None:
        self._producer.flush(FLUSH_S)

    def close(self) -> None:
        self._producer.close()


class ConfluentSending:
    name = "confluent-kafka"

    def __init__(self, bootstrap: str, *, is_idempotent: bool = True) -> None:
        confluent = require_package("confluent_kafka", self.name)
        self._producer = confluent.Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": is_idempotent,
                "message.timeout.ms": DELIVERY_MS,
                "request.timeout.ms": REQUEST_MS,
                "socket.timeout.ms": REQUEST_MS,
                "linger.ms": LINGER_MS,
                "reconnect.backoff.max.ms": BACKOFF_MAX_MS,
                "retry.backoff.max.ms": BACKOFF_MAX_MS,
                "log_level": 0,
            }
        )
        # It tells what was delivered only to somebody who asks.
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._serve, name=self.name)
        self._thread.start()

    def send(self, topic: str, partition: int, value: bytes, on_done: OnDone) -> None:
        self._producer.produce(
            topic, value=value, partition=partition, on_delivery=lambda error, _: on_done(error)
        )

    def flush(self) -> None:
        self._producer.flush(FLUSH_S)

    def close(self) -> None:
        self._is_closing.set()
        self._thread.join()
        # It ends when nobody refers to it any more.
        del self._producer

    def _serve(self) -> None:
        while not self._is_closing.is_set():
            self._producer.poll(0.05)


class KafkaPythonSending:
    name = "kafka-python"

    def __init__(self, bootstrap: str, *, is_idempotent: bool = True) -> None:
        kafka = require_package("kafka", self.name)
        self._producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap.split(","),
            acks="all",
            enable_idempotence=is_idempotent,
            delivery_timeout_ms=DELIVERY_MS,
            request_timeout_ms=REQUEST_MS,
            linger_ms=LINGER_MS,
            reconnect_backoff_max_ms=BACKOFF_MAX_MS,
            metrics_enabled=False,
        )

    def send(self, topic: str, partition: int, value: bytes, on_done: OnDone) -> None:
        future = self._producer.send(topic, value, partition=partition)
        future.add_callback(lambda _: on_done(None))
        future.add_errback(on_done)

    def flush(self) -> None:
        self._producer.flush(FLUSH_S)

    def close(self) -> None:
        self._producer.close()


class AiokafkaSending:
    """With an event loop on a thread of its own.

    It has one limit for a request and for a record with all its retries, so a request to a broker
    that is silent waits for long.
    """

    name = "aiokafka"

    def __init__(self, bootstrap: str, *, is_idempotent: bool = True) -> None:
        self._aiokafka = require_package("aiokafka", self.name)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=self.name, daemon=True)
        self._thread.start()
        self._producer = self._run(self._start(bootstrap, is_idempotent))

    async def _start(self, bootstrap: str, is_idempotent: bool) -> Any:
        producer = self._aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            acks="all",
            enable_idempotence=is_idempotent,
            request_timeout_ms=40_000,
            linger_ms=LINGER_MS,
        )
        await producer.start()
        return producer

    def send(self, topic: str, partition: int, value: bytes, on_done: OnDone) -> None:
        future = self._run(self._producer.send(topic, value, partition=partition))
        future.add_done_callback(lambda done: on_done(done.exception()))

    def flush(self) -> None:
        self._run(self._producer.flush())

    def close(self) -> None:
        try:
            self._run(self._producer.stop())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(FLUSH_S)


SENDING: list[type[SendingClient]] = [
    HeadwaterSending,
    ConfluentSending,
    KafkaPythonSending,
    AiokafkaSending,
]
SENDING_BY_NAME = {each.name: each for each in SENDING}
