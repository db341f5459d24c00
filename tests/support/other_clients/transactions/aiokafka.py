"""aiokafka's transactions, with an event loop on a thread of its own."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

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

Result = TypeVar("Result")


class AiokafkaTransactions:
    """See `contract.TransactionalProducer`."""

    name = "aiokafka"

    def __init__(
        self, bootstrap: str, transactional_id: str, timeout_ms: int = TRANSACTION_TIMEOUT_MS
    ) -> None:
        self._aiokafka = require_package("aiokafka", self.name)
        self._errors = require_package("aiokafka.errors", self.name)
        self._sent: list[Any] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="aiokafka", daemon=True)
        self._thread.start()
        try:
            self._producer = self._run(self._start(bootstrap, transactional_id, timeout_ms))
        except BaseException:
            self._end_loop()
            raise

    def begin(self) -> None:
        self._sent = []
        self._run(self._producer.begin_transaction())

    def send(self, topic: str, value: bytes, partition: int = 0, headers: Headers = ()) -> None:
        sending = self._producer.send(
            topic, value=value, partition=partition, headers=list(headers)
        )
        self._sent.append(self._run(sending))

    def flush(self) -> None:
        self._run(self._settle())

    def send_offsets(self, offsets: Mapping[TopicPartition, int], metadata: Any) -> None:
        positions = {
            self._aiokafka.TopicPartition(*each): offset for each, offset in offsets.items()
        }
        self._run(self._producer.send_offsets_to_transaction(positions, metadata))

    def commit(self) -> None:
        self._run(self._settle())
        self._run(self._producer.commit_transaction())

    def abort(self) -> None:
        self._run(self._producer.abort_transaction())

    def close(self) -> None:
        try:
            self._run(self._producer.stop())
        finally:
            self._end_loop()

    async def _start(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> Any:
        producer = self._aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
        )
        await producer.start()
        return producer

    async def _settle(self) -> None:
        for sent in self._sent:
            await sent

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Do it on the loop's thread and wait; its errors get the protocol's names."""
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result(TIMEOUT_S)
        except self._errors.KafkaError as error:
            code = getattr(error, "errno", None) or 0
            own = re.sub(r"Error$", "", type(error).__name__)
            raise ClientError(error_name(code, own), str(error)) from error

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class AiokafkaReader:
    """See `contract.TransactionReader`."""

    name = "aiokafka"

    def __init__(self, bootstrap: str) -> None:
        self._aiokafka = require_package("aiokafka", self.name)
        self._bootstrap = bootstrap

    def read(self, topic: str, isolation: Isolation, partition: int = 0) -> list[bytes]:
        async def run() -> list[bytes]:
            consumer = self._aiokafka.AIOKafkaConsumer(
                bootstrap_servers=self._bootstrap,
                isolation_level=isolation,
                fetch_max_wait_ms=FETCH_WAIT_MS,
            )
            found: list[bytes] = []
            async with consumer:
                wanted = self._aiokafka.TopicPartition(topic, partition)
                consumer.assign([wanted])
                await consumer.seek_to_beginning(wanted)
                end = (await consumer.end_offsets([wanted]))[wanted]
                deadline = time.monotonic() + TIMEOUT_S
                while await consumer.position(wanted) < end:
                    assert time.monotonic() < deadline, f"{topic} was not read to {end}"
                    for records in (await consumer.getmany(timeout_ms=200)).values():
                        found += [each.value for each in records]
            return found

        return asyncio.run(run())
