"""kafka-python's transactions."""

from __future__ import annotations

import re
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


class KafkaPythonTransactions:
    """See `contract.TransactionalProducer`."""

    name = "kafka-python"

    def __init__(
        self, bootstrap: str, transactional_id: str, timeout_ms: int = TRANSACTION_TIMEOUT_MS
    ) -> None:
        self._kafka = require_package("kafka", self.name)
        self._errors = require_package("kafka.errors", self.name)
        self._sent: list[Any] = []
        with self._named_errors():
            self._producer = self._kafka.KafkaProducer(
                bootstrap_servers=bootstrap,
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
                max_block_ms=int(TIMEOUT_S * 1000),
                reconnect_backoff_max_ms=500,
                metrics_enabled=False,
            )
            self._producer.init_transactions()

    def begin(self) -> None:
        self._sent = []
        with self._named_errors():
            self._producer.begin_transaction()

    def send(self, topic: str, value: bytes, partition: int = 0, headers: Headers = ()) -> None:
        with self._named_errors():
            self._sent.append(
                self._producer.send(topic, value=value, partition=partition, headers=list(headers))
            )

    def flush(self) -> None:
        with self._named_errors():
            self._producer.flush(TIMEOUT_S)
            for sent in self._sent:
                sent.get(TIMEOUT_S)

    def send_offsets(self, offsets: Mapping[TopicPartition, int], metadata: Any) -> None:
        positions = {
            self._kafka.TopicPartition(*each): self._kafka.OffsetAndMetadata(offset, "", -1)
            for each, offset in offsets.items()
        }
        with self._named_errors():
            self._producer.send_offsets_to_transaction(positions, metadata)

    def commit(self) -> None:
        # It would commit even if something that was sent has failed.
        self.flush()
        with self._named_errors():
            self._producer.commit_transaction()

    def abort(self) -> None:
        with self._named_errors():
            self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close(timeout=0)

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except self._errors.KafkaError as error:
            code = getattr(error, "errno", None) or 0
            own = re.sub(r"Error$", "", type(error).__name__)
            raise ClientError(error_name(code, own), str(error)) from error


class KafkaPythonReader:
    """See `contract.TransactionReader`."""

    name = "kafka-python"

    def __init__(self, bootstrap: str) -> None:
        self._kafka = require_package("kafka", self.name)
        self._bootstrap = bootstrap

    def read(self, topic: str, isolation: Isolation, partition: int = 0) -> list[bytes]:
        consumer = self._kafka.KafkaConsumer(
            bootstrap_servers=self._bootstrap,
            isolation_level=isolation,
            fetch_max_wait_ms=FETCH_WAIT_MS,
            metrics_enabled=False,
        )
        found: list[bytes] = []
        try:
            wanted = self._kafka.TopicPartition(topic, partition)
            consumer.assign([wanted])
            consumer.seek_to_beginning(wanted)
            end = consumer.end_offsets([wanted])[wanted]
            deadline = time.monotonic() + TIMEOUT_S
            while consumer.position(wanted) < end:
                assert time.monotonic() < deadline, f"{topic} was not read to {end}"
                for records in consumer.poll(timeout_ms=200).values():
                    found += [each.value for each in records]
        finally:
            consumer.close()
        return found
