"""Moving dead letters of a retry topic, for the broker that leads the partition they wait in.

A session is a producer with a transactional id of the partition's own, so whoever leads next ends
what this one has under way. A letter is copied to the dead-letter topic, and what waits in the
source is cancelled by a record like any client's; both in one transaction.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.delay.dead_letters.moves import DeadLetter, StillWait
from headwater.wire.delayed.headers import DELAY_HEADER, DELAYED_OFFSET_HEADER

if TYPE_CHECKING:
    from headwater.client.environment import ClientEnvironment
    from headwater.client.producer.async_producer import AsyncProducer

#: How the transactional ids begin.
MOVES_PREFIX: Final = "__dead-letters-"
_PRODUCER_MODULE: Final = "headwater.client.producer.async_producer"
_TIMEOUT_MS: Final = 30_000
#: As wide as a broker's own: a letter fits its topic, whatever headers it got.
_REQUEST_BYTES_MAX: Final = 100 << 20


class TransactionalMoves:
    """A `MoveSession` on a client's transactions; see `open_session`."""

    def __init__(self, source: TopicPartition, producer: AsyncProducer) -> None:
        self._source = source
        self._producer = producer

    async def move(self, target: str, letters: Sequence[DeadLetter], still_wait: StillWait) -> None:
        """Copy letters to a topic and cancel them in the source: all, or none with an error."""
        producer, source = self._producer, self._source
        await producer.begin_transaction()
        cancellations = []
        for letter in letters:
            await producer.send(target, letter.value, letter.key, headers=letter.headers)
            headers = [
                (DELAY_HEADER, b"cancel"),
                (DELAYED_OFFSET_HEADER, str(letter.offset).encode()),
            ]
            cancellations.append(
                await producer.send(
                    source.topic, None, None, partition=source.partition, headers=headers
                )
            )
        last_offset = max([(await each).offset for each in cancellations])
        if not still_wait(last_offset):
            await producer.abort_transaction()
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"Another broker may lead {source} by now."
            )
        await producer.commit_transaction()

    async def close(self) -> None:
        """Leave the transaction that may be open to the next session, which aborts it."""
        with contextlib.suppress(KafkaError):
            await self._producer.close(timeout_s=0)


async def open_session(
    bootstrap: str, source: TopicPartition, environment: ClientEnvironment | None = None
) -> TransactionalMoves:
    """Open a session; `KafkaError` if the cluster cannot be had. The simulator has its environment.

    A broker that has no dead letters does without a client, and one that has its first does not
    stop for the import of one.
    """
    if environment is None:
        await asyncio.to_thread(importlib.import_module, _PRODUCER_MODULE)
    from headwater.client.environment import in_environment
    from headwater.client.producer.async_producer import AsyncProducer

    kind = AsyncProducer if environment is None else in_environment(AsyncProducer, environment)
    producer = kind(
        bootstrap_servers=bootstrap,
        client_id=f"dead-letters-{source}",
        transactional_id=f"{MOVES_PREFIX}{source}",
        delivery_timeout_ms=_TIMEOUT_MS,
        request_timeout_ms=_TIMEOUT_MS // 2,
        transaction_timeout_ms=_TIMEOUT_MS,
        max_block_ms=_TIMEOUT_MS,
        max_request_size=_REQUEST_BYTES_MAX,
    )
    session = TransactionalMoves(source, producer)
    try:
        await producer.start()
        await producer.init_transactions()
    except BaseException:
        await session.close()
        raise
    return session
