"""What the tests of transactions ask of any client that has them.

Each client has an adapter of its name beside this module, and as in
`other_clients.contract` it adds nothing of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from tests.support.other_clients.contract import Headers
from tests.support.other_clients.groups.contract import TopicPartition

Isolation = Literal["read_committed", "read_uncommitted"]

TRANSACTION_TIMEOUT_MS = 10_000

#: What a producer is told that another one with its id has come after; each client has its own way.
FENCED = {"PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "-_FENCED", "-ProducerFenced"}


class TransactionalProducer(Protocol):
    """A producer that is ready to begin a transaction as soon as it is made."""

    name: str

    def __init__(
        self, bootstrap: str, transactional_id: str, timeout_ms: int = TRANSACTION_TIMEOUT_MS
    ) -> None: ...

    def begin(self) -> None: ...

    def send(self, topic: str, value: bytes, partition: int = 0, headers: Headers = ()) -> None:
        """Hand it over; the commit waits for it."""

    def flush(self) -> None:
        """Wait until all that was sent is acknowledged."""

    def send_offsets(self, offsets: Mapping[TopicPartition, int], metadata: Any) -> None:
        """Commit offsets with the transaction; `metadata` is what a member of the client gave."""

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...


class TransactionReader(Protocol):
    """Reads a partition from its beginning to the end that the isolation level lets it see."""

    name: str

    def __init__(self, bootstrap: str) -> None: ...

    def read(self, topic: str, isolation: Isolation, partition: int = 0) -> list[bytes]: ...
