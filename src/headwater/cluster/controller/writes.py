"""How a controller writes: only as long as it is the controller.

Each write is one transaction that begins with a check of `/controller_epoch`. Whoever is elected
next raises that node's version, so a controller that was replaced without having noticed cannot
change anything any more. Here the refusals of the store become errors of Kafka's protocol.

A controller finds out here that its time is over: another one took over, its session is gone, or a
write was lost on the way to the store, so that its image is no longer sure to be what the store
holds. Then `on_deposed` is called, once, and everything after that is refused without asking.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.node_locations import CONTROLLER_EPOCH
from headwater.cluster.store.errors import (
    BadVersionError,
    NoNodeError,
    SessionExpiredError,
    StoreError,
    UncertainWriteError,
)
from headwater.cluster.store.metadata_store import Check, MetadataStore, Node, Operation, Result

_logger = logging.getLogger(__name__)

Key = TypeVar("Key", bound=Hashable)


class ControllerWrites:
    """The pen of one elected controller."""

    def __init__(
        self,
        store: MetadataStore,
        epoch: int,
        epoch_version: int,
        on_deposed: Callable[[], None] = lambda: None,
    ) -> None:
        self.epoch = epoch
        self._store = store
        self._fence = Check(CONTROLLER_EPOCH, epoch_version)
        self._on_deposed = on_deposed
        #: Why nothing is written any more.
        self._end: str | None = None

    async def read(self, path: str) -> Node | None:
        """A node that the next write builds on."""
        with self.kafka_errors():
            return await self._store.exists(path)

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """Do all of the operations or none; KafkaError NOT_CONTROLLER if another one took over."""
        if self._end is not None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, self._end)
        with self.kafka_errors():
            return (await self._store.multi([self._fence, *operations]))[1:]

    async def multi_each(
        self, transactions: Mapping[Key, Sequence[Operation]]
    ) -> dict[Key, KafkaError]:
        """Do independent transactions at once; returns the errors of those that failed, by key."""
        outcomes = await asyncio.gather(
            *map(self.multi, transactions.values()), return_exceptions=True
        )
        errors: dict[Key, KafkaError] = {}
        for key, outcome in zip(transactions, outcomes, strict=True):
            if isinstance(outcome, KafkaError):
                errors[key] = outcome
            elif isinstance(outcome, BaseException):
                raise outcome
        return errors

    def close(self) -> None:
        """Write nothing any more; nobody is told."""
        self._end = self._end or "This broker is no longer the controller."

    def give_up(self, reason: str) -> KafkaError:
        """Stop being the controller; returns the error for whoever asked for the change."""
        if self._end is None:
            self._end = reason
            _logger.warning("This controller, of epoch %d, stops: %s", self.epoch, reason)
            self._on_deposed()
        return KafkaError(ErrorCode.NOT_CONTROLLER, reason)

    @contextmanager
    def kafka_errors(self) -> Iterator[None]:
        """Turn what the store raises into errors for whoever asked for the change."""
        try:
            yield
        except SessionExpiredError as error:
            reason = "The controller lost its session with the metadata store."
            raise self.give_up(reason) from error
        except UncertainWriteError as error:
            raise self.give_up(str(error)) from error
        except StoreError as error:
            if isinstance(error, BadVersionError | NoNodeError) and error.path == CONTROLLER_EPOCH:
                raise self.give_up("Another broker has become the controller.") from error
            # The image said that the store would do this, and nobody else writes there.
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
