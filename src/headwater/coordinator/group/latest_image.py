"""The newest state of the cluster that a shard has heard of.

Subscribers of the controller hear of a change before everybody sees it, so that they can prepare.
A heartbeat may come in between: a group whose epoch was raised for a new topic must not be given a
target without it. So from the first change on it is the last one heard of that counts.
"""

from __future__ import annotations

from collections.abc import Callable

from headwater.cluster.image.image import ClusterImage


class LatestImage:
    def __init__(self, published: Callable[[], ClusterImage]) -> None:
        """`published` is what everybody sees; it counts until a change was heard of."""
        self._published = published
        self._heard_of: ClusterImage | None = None

    def hear_of(self, image: ClusterImage) -> None:
        self._heard_of = image

    def __call__(self) -> ClusterImage:
        return self._published() if self._heard_of is None else self._heard_of
