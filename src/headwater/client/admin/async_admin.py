"""`AsyncAdmin`: administers a cluster from asyncio, on a connection of its own.

async with AsyncAdmin(bootstrap_servers="127.0.0.1:9092") as admin:
    await admin.create_topics([NewTopic("orders", partition_count=3)])
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Self, Unpack

from headwater.client.admin.admin_operations import AdminOperations
from headwater.client.environment import HasEnvironment
from headwater.client.settings.admin_settings import ADMIN_SETTINGS
from headwater.client.settings.client_config import parse_settings
from headwater.client.settings.connection_settings import make_connection
from headwater.client.settings.typed import AdminSettings


class AsyncAdmin(AdminOperations, HasEnvironment):
    """Administers a cluster, from an event loop. Use it with `async with`, or `start` and `close`.

    Settings have Kafka's names: in the mapping `config` as they are, as keywords with underscores
    for dots. `help(headwater.AdminSettings)` shows them all, with types and defaults.
    Starting connects to the cluster, and fails at once if no bootstrap server can be reached. With
    a connection of your own, use `AdminOperations`.
    """

    def __init__(
        self, config: Mapping[str, object] | None = None, **settings: Unpack[AdminSettings]
    ) -> None:
        values = parse_settings(ADMIN_SETTINGS, config, settings)
        timeout_s = values.integer("default.api.timeout.ms") / 1000
        super().__init__(make_connection(values, self._make_environment(), timeout_s=timeout_s))

    async def start(self) -> None:
        await self.connection.__aenter__()

    async def close(self) -> None:
        await self.connection.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
