"""Headwater's own transactional producer, as the tests of other clients' transactions use it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from headwater import KafkaError, Producer
from headwater.base.ids import TopicPartition as Partition
from headwater.client.consumer.membership.membership import GroupIdentity
from tests.support.other_clients.contract import TIMEOUT_S, ClientError, Headers
from tests.support.other_clients.groups.contract import TopicPartition
from tests.support.other_clients.transactions.contract import TRANSACTION_TIMEOUT_MS


class HeadwaterTransactions:
    """See `contract.TransactionalProducer`."""

    name = "own-client"

    def __init__(
        self, bootstrap: str, transactional_id: str, timeout_ms: int = TRANSACTION_TIMEOUT_MS
    ) -> None:
        self._producer = Producer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            max_block_ms=int(TIMEOUT_S * 1000),
            reconnect_backoff_max_ms=500,
            linger_ms=0,
        )
        with _named_errors():
            self._producer.init_transactions()

    def begin(self) -> None:
        with _named_errors():
            self._producer.begin_transaction()

    def send(self, topic: str, value: bytes, partition: int = 0, headers: Headers = ()) -> None:
        with _named_errors():
            self._producer.send(topic, value, partition=partition, headers=headers)

    def flush(self) -> None:
        with _named_errors():
            self._producer.flush(TIMEOUT_S)

    def send_offsets(self, offsets: Mapping[TopicPartition, int], metadata: GroupIdentity) -> None:
        positions = {Partition(*each): offset for each, offset in offsets.items()}
        with _named_errors():
            self._producer.send_offsets_to_transaction(positions, metadata)

    def commit(self) -> None:
        with _named_errors():
            self._producer.commit_transaction()

    def abort(self) -> None:
        with _named_errors():
            self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close(0)


@contextmanager
def _named_errors() -> Iterator[None]:
    try:
        yield
    except KafkaError as error:
        raise ClientError(error.code.name, str(error)) from error
