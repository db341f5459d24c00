"""The transactions of a task: letters, and how far the task is, are written together or not at all.

The transactional id is that of the dead-letter topic: whoever begins to send its letters ends what
another has under way. So no two tasks of a topic run at once, and no letter is sent by both.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.delivery.redrive.clients import Clients
from headwater.delivery.redrive.outgoing import Outgoing
from headwater.delivery.redrive.tasks.offset_ranges import GrowingRanges
from headwater.delivery.redrive.tasks.task import Progress
from headwater.delivery.redrive.tasks.task_topic import TASK_TOPIC

_ID_PREFIX: Final = "__redrive."
_PRODUCER: Final = {
    # A runner that was killed holds up readers of its targets for so long, at most.
    "transaction.timeout.ms": 30_000,
    "max.block.ms": 30_000,
    "compression.type": "lz4",
    "batch.size": 128 << 10,
    "linger.ms": 5,
    # How large a record may be is the target's to say.
    "max.request.size": 100 << 20,
}
#: What the cluster says of a record that it would say again.
_REFUSALS: Final = frozenset(
    {
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
    }
)
_FENCED: Final = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})


class TakenOverError(KafkaError):
    """Somebody else runs this task, or another of the same topic, by now."""

    code = ErrorCode.PRODUCER_FENCED


class RefusedError(Exception):
    """A record of the transaction was refused; nothing was sent, and the next may be tried."""

    def __init__(self, error: KafkaError) -> None:
        super().__init__(str(error))
        self.error = error


class Sending:
    """Owns the producer of a task."""

    def __init__(self, clients: Clients, source: str, task_id: str) -> None:
        self._task_id = task_id
        self._source = source
        self._producer = clients.producer({**_PRODUCER, "transactional.id": _ID_PREFIX + source})

    async def start(self) -> None:
        """Nothing that an earlier runner did is undecided when this returns."""
        await self._producer.start()
        await self._producer.init_transactions()

    async def close(self) -> None:
        with contextlib.suppress(KafkaError):
            await self._producer.close(timeout_s=0)

    async def transact(
        self,
        letters: Sequence[Outgoing],
        progress: Progress,
        ranges: Mapping[int, GrowingRanges],
    ) -> None:
        """Send letters, and how far the task is with them; `RefusedError` if one is not taken."""
        producer = self._producer
        try:
            await producer.begin_transaction()
            try:
                for topic, key, value, headers, partition in letters:
                    await producer.send(topic, value, key, partition=partition, headers=headers)
                await self._send_progress(progress, ranges)
                await producer.commit_transaction()
            except KafkaError as error:
                if error.code not in _REFUSALS:
                    raise
                await producer.abort_transaction()
                raise RefusedError(error) from error
        except KafkaError as error:
            if error.code in _FENCED:
                raise TakenOverError(
                    f"Another redrive of {self._source!r} has taken over, or a transaction took "
                    "too long: this one ends. See `headwater dlq tasks`."
                ) from error
            raise

    async def _send_progress(self, progress: Progress, ranges: Mapping[int, GrowingRanges]) -> None:
        await self._send_json("progress", progress.as_json())
        for partition, growing in ranges.items():
            for chunk, bounds in growing.chunks().items():
                await self._send_json(f"done/{partition}/{chunk}", bounds)

    async def _send_json(self, kind: str, document: object) -> None:
        value = json.dumps(document, separators=(",", ":")).encode()
        await self._producer.send(
            TASK_TOPIC, value, f"{self._task_id}/{kind}".encode(), partition=0
        )
