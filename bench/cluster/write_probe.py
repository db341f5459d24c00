"""When a partition takes writes again, without the patience of any client.

Each broker that is left is asked again and again, on a connection of its own, to write a record
with acks=all. The first acknowledgement tells when the cluster was ready; what a producer needs
beyond that is the producer's own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from bench.broker.raw_client import RawClient, read_answer
from bench.broker.request_load import produce_frame
from bench.cluster.clusters import Cluster
from headwater.wire.api_keys import ApiKey

_PAUSE_S = 0.01
_RECORD_SIZE_BYTES = 100
_TIMEOUT_S = 60.0


class WriteProbe:
    """Asks from when it is entered until it is left, or until a write was acknowledged."""

    def __init__(self, cluster: Cluster, topic: str, broker_ids: Sequence[int]) -> None:
        frame = produce_frame(topic, 0, _RECORD_SIZE_BYTES, 1, acks=-1)
        self._ended = threading.Event()
        self._acknowledged_ns: list[int] = []
        self._threads = [
            threading.Thread(
                target=self._ask, args=(int(cluster.address(each).rpartition(":")[2]), frame)
            )
            for each in broker_ids
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    @property
    def acknowledged_ns(self) -> int:
        """The first acknowledgement, by the monotonic clock; RuntimeError if there was none."""
        if not self._acknowledged_ns:
            raise RuntimeError("No broker took a write while it was asked.")
        return min(self._acknowledged_ns)

    def _ask(self, port: int, frame: bytes) -> None:
        with RawClient(port, timeout_s=_TIMEOUT_S) as client:
            while not self._ended.is_set():
                response = read_answer(client.ask_bytes(frame), ApiKey.PRODUCE)
                [partition] = response.responses[0].partition_responses
                if partition.error_code == 0:
                    self._acknowledged_ns.append(time.monotonic_ns())
                    self._ended.set()
                    return
                time.sleep(_PAUSE_S)
