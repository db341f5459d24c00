"""Makes the clusters that are compared, and sees to it that nothing of them stays behind."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.cluster.clusters import Cluster, MakeCluster
from bench.cluster.questions import wait_for_brokers
from headwater.testing.apache_kafka import KafkaNodeError


class Pair:
    """Makes the two that are compared, ours first, on fresh directories of one disk."""

    def __init__(self, parent: Path, makers: Sequence[MakeCluster]) -> None:
        self._parent = parent
        self._makers = makers
        self._count = 0

    @contextlib.contextmanager
    def started(self) -> Iterator[tuple[Cluster, ...]]:
        """Both running; whoever is not under load idles. Afterwards nothing is left of them."""
        with contextlib.ExitStack() as stack:
            yield tuple(stack.enter_context(self.one(side)) for side in range(len(self._makers)))

    @contextlib.contextmanager
    def one(self, side: int) -> Iterator[Cluster]:
        """One of them by itself, for what the machine has no room to do twice at a time."""
        self._count += 1
        directory = self._parent / f"{self._count}-{side}"
        cluster = self._makers[side](directory)
        try:
            cluster.start()
            # A broker may answer before the others know it.
            wait_for_brokers(cluster)
            yield cluster
        finally:
            with contextlib.suppress(KafkaNodeError):
                cluster.kill()
            shutil.rmtree(directory, ignore_errors=True)

    @property
    def side_count(self) -> int:
        return len(self._makers)
