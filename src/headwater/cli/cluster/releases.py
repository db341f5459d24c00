"""Which release each broker runs: no API of Kafka's tells it, the metrics page of Headwater does.

It is asked once for each broker, since a broker that runs another release has been away meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Final

from headwater.base.errors import KafkaError
from headwater.cli.cluster.told import told
from headwater.cli.metrics.page import MetricsPage
from headwater.cli.metrics.source import MetricsAddress, fetch_page, find_addresses
from headwater.client.connection.cluster_connection import ClusterConnection

_PAGE_S: Final = 2.0


class Releases:
    """What brokers said, for as long as they are there without a break."""

    def __init__(self) -> None:
        self._known: dict[int, str | None] = {}

    async def of(self, connection: ClusterConnection, live: Collection[int]) -> dict[int, str]:
        """The releases of brokers that tell theirs."""
        self._known = {key: release for key, release in self._known.items() if key in live}
        new = [each for each in live if each not in self._known]
        if new:
            addresses = await told(find_addresses(connection, new)) or {}
            pages = [self._ask(addresses.get(each)) for each in new]
            self._known.update(zip(new, await asyncio.gather(*pages), strict=True))
        return {key: release for key, release in self._known.items() if release is not None}

    async def _ask(self, address: MetricsAddress | None) -> str | None:
        if address is None:
            return None
        try:
            page = await told(asyncio.to_thread(fetch_page, address), _PAGE_S)
        except KafkaError:
            return None
        if page is None:
            return None
        samples = MetricsPage(page).samples("headwater_build_info")
        return next((each.labels.get("version") for each in samples), None)
