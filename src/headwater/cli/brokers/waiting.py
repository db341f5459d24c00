"""Waits for brokers that are away while replicas move, and says for whom, once each time."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Collection
from typing import Final, TypeVar

from headwater.base.errors import KafkaError
from headwater.client.admin import BrokerOperations
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.connection.retry import may_retry
from headwater.client.errors import NoBrokerError

#: A broker that is needed may take so long to come back: about as long as a machine takes to start.
RETURN_S: Final = 120.0
#: A cluster that answers nothing for so long is given up.
_SILENT_S: Final = 600.0
_PAUSE_S: Final = 1.0

Result = TypeVar("Result")


class Waiting:
    def __init__(self) -> None:
        self._told = ""

    async def through(self, attempt: Callable[[], Awaitable[Result]]) -> Result:
        """Repeat `attempt` while brokers, or the controller, are away."""
        deadline_s = time.monotonic() + _SILENT_S
        while True:
            try:
                return await attempt()
            except KafkaError as error:
                passes = may_retry(error) or isinstance(error, NoBrokerError)
                if not passes or time.monotonic() > deadline_s:
                    raise
                self._tell(f"Waiting for the cluster: {error}")
            await asyncio.sleep(_PAUSE_S)

    def tell_absent(self, broker_ids: Collection[int]) -> None:
        """That these brokers are waited for; without any, that nobody is any more."""
        if not broker_ids:
            self._told = ""
            return
        names = ", ".join(map(str, sorted(broker_ids)))
        are = "broker {}, which is" if len(broker_ids) == 1 else "brokers {}, which are"
        self._tell(f"Waiting for {are.format(names)} not there.")

    def _tell(self, sentence: str) -> None:
        if sentence != self._told:
            # At a terminal it takes the place of the line of progress, which comes again.
            start = "\r" if sys.stderr.isatty() else ""
            print(f"{start}{sentence:<100}".rstrip(), file=sys.stderr, flush=True)
        self._told = sentence


async def live_brokers(connection: ClusterConnection) -> set[int]:
    cluster = await BrokerOperations(connection).describe_cluster()
    return {broker.broker_id for broker in cluster.brokers}
