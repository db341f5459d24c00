"""Commits what is done, and sends on what failed, both at once or neither.

Where nothing failed an offset commit is enough. Otherwise failed records are written, and offsets
committed, in one transaction in the name of the group's member: one that has lost its partitions
cannot commit it. When a transaction fails, nobody knows whether it was committed. A new producer of
the same transactional id settles that, and then the group's offsets tell.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.delivery.worker.clients import WorkerConsumer, WorkerProducer
from headwater.delivery.worker.decisions.unsettled import Letter, Offsets, Settlement
from headwater.delivery.worker.decisions.work import Work
from headwater.delivery.worker.options import WorkerOptions

MakeProducer = Callable[[Mapping[str, object]], WorkerProducer]

#: What the cluster says of a record that it would say again.
_REFUSALS: Final = frozenset(
    {
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
    }
)
#: How long an offset commit may take.
_COMMIT_S: Final = 20.0

_logger = logging.getLogger(__name__)


class Settler:
    """Owns the worker's producer, which is there once something has failed."""

    def __init__(
        self,
        options: WorkerOptions,
        work: Work,
        consumer: WorkerConsumer,
        make_producer: MakeProducer,
        unique: str,
    ) -> None:
        """`unique` is a name that no other worker has."""
        self._config = options.producer_config(unique)
        self._has_name = options.instance is not None
        self._work = work
        self._consumer = consumer
        self._make_producer = make_producer
        self._producer: WorkerProducer | None = None
        #: Whether a transaction has failed of which nobody knows what became.
        self._is_doubtful = False

    async def start(self) -> None:
        """Settle what an earlier worker of the same instance left open."""
        if self._has_name:
            await self._renew()

    async def settle(self) -> None:
        """Commit all that can be; a `KafkaError` leaves the rest to another try."""
        if self._is_doubtful:
            await self._renew()
            partitions = self._work.unsettled_partitions()
            if partitions:
                self._work.found_committed(await self._consumer.committed(partitions))
            self._is_doubtful = False
        is_alone = False
        while (settlement := self._work.settlement(is_alone=is_alone)) is not None:
            if not settlement.letters:
                await self._consumer.commit(settlement.offsets, _COMMIT_S)
            elif not await self._transact(settlement):
                is_alone = True
                continue
            self._work.settled(settlement)

    async def close(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            with contextlib.suppress(KafkaError):
                await producer.close(0)

    async def _renew(self) -> WorkerProducer:
        """Have a new producer, after which no transaction of an earlier one is undecided."""
        await self.close()
        producer = self._make_producer(self._config)
        await producer.start()
        self._producer = producer
        try:
            await producer.init_transactions()
        except BaseException:
            await self.close()
            raise
        return producer

    async def _transact(self, settlement: Settlement) -> bool:
        """Whether it is done; if a record was refused it is not, and each has to go alone."""
        producer = self._producer or await self._renew()
        self._is_doubtful = True
        await producer.begin_transaction()
        try:
            for letter in settlement.letters:
                produced = letter.produced
                await producer.send(
                    produced.topic, produced.value, produced.key, headers=produced.headers
                )
            offsets: Offsets = settlement.offsets or {}
            await producer.send_offsets_to_transaction(offsets, self._consumer.group_identity())
            await producer.commit_transaction()
        except KafkaError as error:
            if error.code not in _REFUSALS:
                raise
            await producer.abort_transaction()
            self._is_doubtful = False
            if len(settlement.letters) == 1:
                self._reduce(settlement.letters[0], error)
            return False
        self._is_doubtful = False
        self._consumer.committed_elsewhere(offsets)
        return True

    def _reduce(self, letter: Letter, error: KafkaError) -> None:
        """Send on less of what was refused when it came alone."""
        without = self._work.refused(letter, error)
        if without is None:
            raise error
        _logger.error(
            "The failed record at offset %d of %s is sent on without %s: %s",
            *(letter.offset, letter.topic_partition, without, error),
        )
