"""Brings the controller's image to all brokers, each at its own pace.

Every registered broker has a feed. It starts with a snapshot, and then sends what was touched since
the broker last answered: one message at a time, so a slow broker gets fewer and larger ones. When a
message is lost, or does not fit what the broker has, the next one is a snapshot again. The broker
that is the controller itself is fed like all others.

A change counts as published when the brokers have followed it, so that a client that was told of a
new topic finds it wherever it asks. A broker that cannot be reached, or that took too long once, is
not waited for again until it has caught up: it must not hold up the others.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from typing import Final

from headwater.base.background_tasks import BackgroundTasks
from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.image.change import ImageChange
from headwater.cluster.image.image import BrokerInfo, ClusterImage
from headwater.cluster.image.update import TouchedParts, snapshot
from headwater.wire.cluster_messages.update_image import UpdateImageRequest, UpdateImageResponse

_logger = logging.getLogger(__name__)

#: How long a change waits for a broker other than the controller's own.
FOLLOW_LIMIT_S: Final = 5.0
#: A broker that stops cannot be reached for a moment before it is gone, which is no news.
WARN_AFTER_S: Final = 5.0
#: How long a feed leaves a broker alone that could not be told.
RETRY_PAUSE_S: Final = 0.1

#: Sends a message to a broker and returns its answer; raises KafkaError.
SendUpdate = Callable[[BrokerInfo, UpdateImageRequest], Awaitable[UpdateImageResponse]]

_NOTHING: Final = -1


class ImageDistribution:
    """A `Publisher` over the network; lives as long as one controller."""

    def __init__(
        self,
        own_id: int,
        send: SendUpdate,
        on_deposed: Callable[[], None],
        tasks: BackgroundTasks,
    ) -> None:
        """`on_deposed` is called when a broker has heard of a later controller."""
        self.image = ClusterImage()
        self._own_id = own_id
        self._send = send
        self._on_deposed = on_deposed
        self._tasks = tasks
        self._feeds: dict[int, _Feed] = {}
        self._is_closed = False

    def announce(self, change: ImageChange) -> None:
        self.image = change.image
        if self._is_closed:
            return  # The controller ends a change that it had begun; its successor will tell of it.
        for feed in self._feeds.values():
            feed.touched.add(change)
        self._follow_registrations()
        for feed in self._feeds.values():
            feed.wake()

    async def followed(self, version: int) -> None:
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + FOLLOW_LIMIT_S
        for broker_id, feed in list(self._feeds.items()):
            limit_s = None if broker_id == self._own_id else deadline_s - loop.time()
            await feed.wait_for(version, limit_s)

    async def close(self) -> None:
        """Tell nobody anything any more."""
        self._is_closed = True
        feeds, self._feeds = list(self._feeds.values()), {}
        for feed in feeds:
            await feed.close()

    def _follow_registrations(self) -> None:
        brokers = self.image.brokers
        for broker_id, feed in list(self._feeds.items()):
            if brokers.get(broker_id) != feed.broker:
                self._feeds.pop(broker_id).end()
        for broker_id, broker in brokers.items():
            if broker_id not in self._feeds:
                self._feeds[broker_id] = _Feed(self, broker, self._tasks)

    async def send(self, broker: BrokerInfo, request: UpdateImageRequest) -> UpdateImageResponse:
        response = await self._send(broker, request)
        if response.error_code == ErrorCode.STALE_CONTROLLER_EPOCH:
            self._on_deposed()
        return response


class _Feed:
    """What one life of a broker is told."""

    def __init__(
        self, distribution: ImageDistribution, broker: BrokerInfo, tasks: BackgroundTasks
    ) -> None:
        self.broker = broker
        self.touched = TouchedParts()
        #: The version of the image that the broker has.
        self._acknowledged = _NOTHING
        #: Whether it failed to follow in time, so that nobody waits for it.
        self._is_behind = False
        self._warn_at_s = math.inf
        self._distribution = distribution
        self._news = asyncio.Event()
        self._progress = asyncio.Event()
        self._task = tasks.start(f"image feed of broker {broker.broker_id}", self._run())

    def wake(self) -> None:
        self._news.set()

    async def wait_for(self, version: int, limit_s: float | None) -> None:
        """Return when the broker has that image, or when it is not to be waited for."""
        try:
            async with asyncio.timeout(limit_s):
                while self._acknowledged < version and not self._is_behind:
                    self._progress.clear()
                    await self._progress.wait()
        except TimeoutError:
            self._fall_behind(f"it has not answered for {FOLLOW_LIMIT_S:g} s")

    def end(self) -> None:
        """The broker is gone."""
        self._is_behind = True
        self._progress.set()
        self._task.cancel()

    async def close(self) -> None:
        self.end()
        await asyncio.wait({self._task})

    async def _run(self) -> None:
        try:
            while True:
                image = self._distribution.image
                if self._acknowledged < image.version:
                    await self._tell(image)
                else:
                    self._news.clear()
                    await self._news.wait()
        finally:
            # However it ends: nobody waits for a broker that is told nothing any more.
            self._is_behind = True
            self._progress.set()

    async def _tell(self, image: ClusterImage) -> None:
        touched, self.touched = self.touched, TouchedParts()
        if self._acknowledged == _NOTHING:
            request = snapshot(image)
        else:
            request = touched.delta(image, self._acknowledged)
        try:
            response = await self._distribution.send(self.broker, request)
        except KafkaError as error:
            await self._failed(str(error))
            return
        if response.error_code:
            await self._failed(f"it answered {ErrorCode.from_wire(response.error_code).name}")
            return
        self._acknowledged = image.version
        self._is_behind = False
        self._progress.set()

    async def _failed(self, reason: str) -> None:
        was_told = self._acknowledged != _NOTHING
        self._acknowledged = _NOTHING
        # A delta that does not fit is no failure: the snapshot follows at once.
        if not was_told:
            self._fall_behind(reason)
            await asyncio.sleep(RETRY_PAUSE_S)

    def _fall_behind(self, reason: str) -> None:
        now_s = asyncio.get_running_loop().time()
        if not self._is_behind:
            self._warn_at_s = now_s + WARN_AFTER_S
        elif now_s >= self._warn_at_s:
            _logger.warning("Broker %d does not follow: %s", self.broker.broker_id, reason)
            self._warn_at_s = math.inf
        self._is_behind = True
        self._progress.set()
