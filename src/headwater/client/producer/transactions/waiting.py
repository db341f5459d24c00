"""The transactions of a producer, for who waits: how the shells of both kinds call the manager.

Each call waits for `max.block.ms` at most. One that took too long goes on nevertheless: the same
call again waits for the same outcome, and any other is refused until that is known, because nobody
can say meanwhile whether the transaction is committed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.committed.user_commits import as_offsets
from headwater.client.consumer.membership.membership import GroupIdentity
from headwater.client.kafka_errors import InvalidTxnStateError, error_for
from headwater.client.machines.completion import Completion
from headwater.client.producer.idempotence.identity import PreparedTransactionState
from headwater.client.producer.transactions.coordinator_errors import TransactionPendingError
from headwater.client.producer.transactions.manager import TransactionManager
from headwater.client.producer.transactions.states import State

T = TypeVar("T")


class Transactions:
    """Owned by the loop of its producer; `wake` has the driver look at the machines."""

    def __init__(
        self, manager: TransactionManager, wake: Callable[[], None], max_block_s: float
    ) -> None:
        self._manager = manager
        self._operations = manager.operations
        self._wake = wake
        self._max_block_s = max_block_s
        #: What a caller stopped waiting for: its name, and its outcome.
        self._unclaimed: tuple[str, Completion[Any]] | None = None

    async def initialize(self, keep_prepared: bool = False) -> None:
        await self._do(
            "init_transactions", lambda: self._operations.initialize(keep_prepared=keep_prepared)
        )

    async def begin(self) -> None:
        self._check_claimed("begin_transaction")
        self._operations.begin()

    async def commit(self) -> None:
        await self._do("commit_transaction", self._operations.commit)

    async def abort(self) -> None:
        await self._do("abort_transaction", self._operations.abort)

    async def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int], group: GroupIdentity
    ) -> None:
        whole = as_offsets(offsets)
        if not isinstance(group, GroupIdentity):
            raise TypeError(
                f"The group cannot be {group!r}: give consumer.group_identity(), so that a member "
                "that was replaced cannot commit."
            )
        await self._do(
            "send_offsets_to_transaction", lambda: self._operations.send_offsets(whole, group)
        )

    async def prepare(self) -> PreparedTransactionState:
        return await self._do("prepare_transaction", self._operations.prepare)

    async def complete(self, decided: PreparedTransactionState | str) -> None:
        if isinstance(decided, str):
            decided = PreparedTransactionState.parse(decided)
        await self._do("complete_transaction", lambda: self._operations.complete(decided))

    @property
    def prepared(self) -> PreparedTransactionState:
        """The transaction that is prepared at the moment; one that does not exist if none is."""
        return self._operations.prepared

    @property
    def is_open(self) -> bool:
        """Whether a transaction was begun that nobody has ended or prepared."""
        return self._operations.state in (State.IN_TRANSACTION, State.ABORTABLE_ERROR)

    def check_goes_on(self) -> None:
        """Raise what this producer cannot go on after."""
        if (error := self._manager.fatal_error) is not None:
            raise error_for(error.code, error.detail)

    async def close(self) -> None:
        """Abort what is open, since nobody else could before it times out.

        What is prepared stays so, which is what preparing it was for.
        """
        if self.is_open:
            self._unclaimed = None
            # What the coordinator does not hear now, it finds out when the transaction times out.
            with contextlib.suppress(KafkaError):
                await self.abort()

    async def _do(self, name: str, start: Callable[[], Completion[T]]) -> T:
        self._check_claimed(name)
        completion: Completion[T] = start() if self._unclaimed is None else self._unclaimed[1]
        self._wake()
        try:
            async with asyncio.timeout(self._max_block_s):
                return await completion.wait()
        except TimeoutError:
            trouble = self._manager.trouble
            reason = "." if trouble is None else f": {trouble}"
            raise TransactionPendingError(
                f"{name}() did not finish within max.block.ms, which is "
                f"{self._max_block_s * 1000:g}{reason}"
            ) from trouble
        finally:
            self._unclaimed = None if completion.is_done else (name, completion)

    def _check_claimed(self, name: str) -> None:
        if self._manager.fatal_error is not None:
            # What it comes to is known: every call is told.
            self._unclaimed = None
        if self._unclaimed is not None and self._unclaimed[0] != name:
            raise InvalidTxnStateError(
                f"{self._unclaimed[0]}() was called and its outcome is not known yet: call it "
                f"again before {name}()."
            )
