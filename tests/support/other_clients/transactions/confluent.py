"""confluent-kafka's transactions."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.support.other_clients.contract import (
    FETCH_WAIT_MS,
    TIMEOUT_S,
    ClientError,
    Headers,
    error_name,
    require_package,
)
from tests.support.other_clients.groups.contract import TopicPartition
from tests.support.other_clients.transactions.contract import TRANSACTION_TIMEOUT_MS, Isolation


class ConfluentTransactions:
    """See `contract.TransactionalProducer`."""

    name = "confluent-kafka"

    def __init__(
        self, bootstrap: str, transactional_id: str, timeout_ms: int = TRANSACTION_TIMEOUT_MS
    ) -> None:
        self._confluent = require_package("confluent_kafka", self.name)
        self._producer = self._confluent.Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "reconnect.backoff.max.ms": 500,
                "linger.ms": 0,
                "log_level": 0,
            }
        )
        with self._named_errors():
            self._producer.init_transactions(TIMEOUT_S)

    def begin(self) -> None:
        with self._named_errors():
            self._producer.begin_transaction()

    def send(self, topic: str, value: bytes, partition: int = 0, headers: Headers = ()) -> None:
        with self._named_errors():
            self._producer.produce(topic, value=value, partition=partition, headers=list(headers))

    def flush(self) -> None:
        assert self._producer.flush(TIMEOUT_S) == 0

    def send_offsets(self, offsets: Mapping[TopicPartition, int], metadata: Any) -> None:
        positions = [
            self._confluent.TopicPartition(*each, offset) for each, offset in offsets.items()
        ]
        with self._named_errors():
            self._producer.send_offsets_to_transaction(positions, metadata, TIMEOUT_S)

    def commit(self) -> None:
        with self._named_errors():
            self._producer.commit_transaction(TIMEOUT_S)

    def abort(self) -> None:
        with self._named_errors():
            self._producer.abort_transaction(TIMEOUT_S)

    def close(self) -> None:
        # It ends when nobody refers to it any more, without a word to the broker.
        del self._producer

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except self._confluent.KafkaException as failure:
            error = failure.args[0]
            raise ClientError(error_name(error.code(), error.name()), error.str()) from failure


class ConfluentReader:
    """See `contract.TransactionReader`."""

    name = "confluent-kafka"

    def __init__(self, bootstrap: str) -> None:
        self._confluent = require_package("confluent_kafka", self.name)
        self._bootstrap = bootstrap

    def read(self, topic: str, isolation: Isolation, partition: int = 0) -> list[bytes]:
        consumer = self._confluent.Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": isolation,
                "fetch.wait.max.ms": FETCH_WAIT_MS,
                "log_level": 0,
            }
        )
        found: list[bytes] = []
        try:
            beginning = self._confluent.OFFSET_BEGINNING
            consumer.assign([self._confluent.TopicPartition(topic, partition, beginning)])
            deadline = time.monotonic() + TIMEOUT_S
            while time.monotonic() < deadline:
                event: Any = consumer.poll(1.0)
                if event is None:
                    continue
                if event.error() is None:
                    found.append(event.value())
                elif event.error().code() == self._confluent.KafkaError._PARTITION_EOF:
                    return found
        finally:
            consumer.close()
        raise TimeoutError(f"the end of {topic} was not reached after {len(found)} records")
