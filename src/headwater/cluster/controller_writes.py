"""How a controller writes: only as long as it is the controller.

Each write is one transaction that begins with a check of `/controller_epoch`. Whoever is elected
next raises that node's version, so a controller that was replaced without having noticed cannot
change anything any more. Here the refusals of the store become errors of Kafka's protocol.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.node_locations import CONTROLLER_EPOCH
from headwater.cluster.store.errors import BadVersionError, SessionExpiredError, StoreError
from headwater.cluster.store.metadata_store import Check, MetadataStore, Node, Operation, Result


class ControllerWrites:
    """The pen of one elected controller."""

    def __init__(self, store: MetadataStore, epoch: int, epoch_version: int) -> None:
        self.epoch = epoch
        self._store = store
        self._fence = Check(CONTROLLER_EPOCH, epoch_version)

    async def read(self, path: str) -> Node | None:
        """A node that the next write builds on."""
        with _kafka_errors():
            return await self._store.exists(path)

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """Do all of the operations or none; KafkaError NOT_CONTROLLER if another one took over."""
        with _kafka_errors():
            return (await self._store.multi([self._fence, *operations]))[1:]

    async def multi_each(
        self, transactions: Mapping[str, Sequence[Operation]]
    ) -> dict[str, KafkaError]:
        """Do independent transactions at once; returns the errors of those that failed, by name."""
        outcomes = await asyncio.gather(
            *map(self.multi, transactions.values()), return_exceptions=True
        )
        errors: dict[str, KafkaError] = {}
        for name, outcome in zip(transactions, outcomes, strict=True):
            if isinstance(outcome, KafkaError):
                errors[name] = outcome
            elif isinstance(outcome, BaseException):
                raise outcome
        return errors


@contextmanager
def _kafka_errors() -> Iterator[None]:
    try:
        yield
    except SessionExpiredError as error:
        reason = "The controller lost its session with the metadata store."
        raise KafkaError(ErrorCode.NOT_CONTROLLER, reason) from error
    except StoreError as error:
        if isinstance(error, BadVersionError) and error.path == CONTROLLER_EPOCH:
            reason = "Another broker has become the controller."
            raise KafkaError(ErrorCode.NOT_CONTROLLER, reason) from error
        # The image said that the store would do this, and nobody else writes there.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
