"""Holds the current image, and tells those who subscribed before it is replaced.

A topic that is new appears in the image after the subscribers have prepared for it; one that is
deleted disappears before they clear up. So nobody who reads the image finds a topic whose logs are
not there.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from headwater.base.errors import KafkaError
from headwater.cluster.image.change import ImageChange
from headwater.cluster.image.image import ClusterImage

_logger = logging.getLogger(__name__)

Subscriber = Callable[[ImageChange], Awaitable[None]]


class ImagePublisher:
    """The image that handlers see; only one change at a time may be published."""

    def __init__(self) -> None:
        self.image = ClusterImage()
        self._subscribers: list[Subscriber] = []

    def subscribe(self, subscriber: Subscriber) -> None:
        """Have `subscriber` called with every change, and awaited before it is reported done."""
        self._subscribers.append(subscriber)

    async def publish(self, change: ImageChange) -> None:
        """Tell the subscribers, in the order in which they came, and replace the image.

        The change is in the store already and cannot be taken back: so a log that cannot be
        created or removed is for its owner to report, and for a line in the log here.
        """
        if change.deleted_topics:
            self.image = change.image
        try:
            for subscriber in self._subscribers:
                try:
                    await subscriber(change)
                except (KafkaError, OSError) as error:
                    _logger.error("A change of the metadata could not be followed: %s", error)
        finally:
            self.image = change.image
