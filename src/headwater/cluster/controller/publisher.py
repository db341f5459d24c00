"""What a controller needs of whoever tells the brokers: an image, and how it gets to them."""

from __future__ import annotations

from typing import Protocol

from headwater.cluster.image.change import ImageChange
from headwater.cluster.image.image import ClusterImage


class Publisher(Protocol):
    #: What the metadata store says, as far as the controller has written it.
    image: ClusterImage

    def announce(self, change: ImageChange) -> None:
        """Replace the image, and begin to tell all brokers."""

    async def followed(self, version: int) -> None:
        """Return when the live brokers have that version of the image, or took too long.

        A broker that hangs must not hold up the others.
        """
