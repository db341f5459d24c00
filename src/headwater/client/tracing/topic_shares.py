"""Asks the cluster which share of a topic's records is traced, when it is needed and now and then.

The setting of a topic is `trace.sample`. Apache Kafka has none, and then nothing is sampled there
unless the client's own setting says otherwise. Lives on the client's loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Collection
from typing import Final

from headwater.base.errors import KafkaError
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.tracing.sampling import Sampler
from headwater.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)

SETTING: Final = "trace.sample"
#: A change at run time is seen after so long at most.
_REFRESH_S: Final = 60.0
#: The first record of a topic waits so long at most; without an answer it is not traced.
_WAIT_S_MAX: Final = 2.0
_TOPIC: Final = 2

_logger = logging.getLogger("headwater.client")


class TopicShares:
    def __init__(
        self,
        connection: ClusterConnection,
        sampler: Sampler,
        own_share: float | None,
        *,
        refresh_s: float = _REFRESH_S,
    ) -> None:
        self._connection = connection
        self._sampler = sampler
        #: What the client's user wants, whatever the topics say.
        self._own_share = own_share
        self._refresh_s = refresh_s
        self._refreshing: asyncio.Task[None] | None = None

    async def learn(self, topic: str, timeout_s: float) -> None:
        """Have a share for the topic, whatever happens."""
        if self._sampler.share(topic) is not None:
            return
        if self._own_share is not None:
            self._sampler.set_share(topic, self._own_share)
            return
        if self._refreshing is None:
            self._refreshing = asyncio.get_running_loop().create_task(self._refresh())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(timeout_s, _WAIT_S_MAX)):
                await self._ask([topic])
        if self._sampler.share(topic) is None:
            self._sampler.set_share(topic, 0.0)

    async def close(self) -> None:
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.gather(self._refreshing, return_exceptions=True)

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(self._refresh_s)
            await self._ask(self._sampler.topics)

    async def _ask(self, topics: Collection[str]) -> None:
        """What cannot be asked stays as it is."""
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=_TOPIC, resource_name=topic, configuration_keys=[SETTING]
                )
                for topic in topics
            ]
        )
        try:
            response = await self._connection.ask(request, DescribeConfigsResponse)
        except KafkaError as error:
            _logger.debug("%s of topics was not learned: %s", SETTING, error)
            return
        for result in response.results:
            if not result.error_code:
                texts = [each.value for each in result.configs if each.name == SETTING]
                self._sampler.set_share(result.resource_name, _share(texts[0] if texts else None))


def _share(text: str | None) -> float:
    try:
        share = float(text or 0.0)
    except ValueError:
        return 0.0
    return share if 0.0 <= share <= 1.0 else 0.0
