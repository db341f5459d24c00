"""`with producer.transaction():` begins a transaction, and commits or aborts it at the end.

It is aborted if the block raises, and if the commit fails for a reason after which it can be. The
error is then raised on; one that the abort itself meets is not, since it says less.
"""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import Protocol

from headwater.base.errors import KafkaError
from headwater.client.producer.transactions.coordinator_errors import TransactionPendingError


class TransactionalProducer(Protocol):
    def begin_transaction(self) -> None: ...

    def commit_transaction(self) -> None: ...

    def abort_transaction(self) -> None: ...


class AsyncTransactionalProducer(Protocol):
    async def begin_transaction(self) -> None: ...

    async def commit_transaction(self) -> None: ...

    async def abort_transaction(self) -> None: ...


class SyncTransaction:
    def __init__(self, producer: TransactionalProducer) -> None:
        self._producer = producer

    def __enter__(self) -> None:
        self._producer.begin_transaction()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            self._abort()
            return
        try:
            self._producer.commit_transaction()
        except TransactionPendingError:
            # It may yet be committed: only another commit_transaction() can tell.
            raise
        except KafkaError:
            self._abort()
            raise

    def _abort(self) -> None:
        with contextlib.suppress(KafkaError):
            self._producer.abort_transaction()


class AsyncTransaction:
    def __init__(self, producer: AsyncTransactionalProducer) -> None:
        self._producer = producer

    async def __aenter__(self) -> None:
        await self._producer.begin_transaction()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            await self._abort()
            return
        try:
            await self._producer.commit_transaction()
        except TransactionPendingError:
            # It may yet be committed: only another commit_transaction() can tell.
            raise
        except KafkaError:
            await self._abort()
            raise

    async def _abort(self) -> None:
        with contextlib.suppress(KafkaError):
            await self._producer.abort_transaction()
