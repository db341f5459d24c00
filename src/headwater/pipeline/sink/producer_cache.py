"""Keeps a producer for the next task of this Python worker, since making one costs a connection.

Spark uses a Python worker for many tasks, one after the other, mostly of the same query. A producer
that was not used for a while is closed, by a thread that waits for just that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from headwater.client.producer.producer import Producer

IDLE_S: Final = 60.0

_Key = tuple[tuple[str, str], ...]


class ProducerCache:
    """One producer for each choice of settings; whoever has it, has it alone."""

    def __init__(
        self,
        make: Callable[[Mapping[str, str]], Producer] = Producer,
        idle_s: float = IDLE_S,
    ) -> None:
        self._make = make
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._idle: dict[_Key, tuple[Producer, threading.Timer]] = {}

    @contextmanager
    def borrowed(self, settings: Mapping[str, str]) -> Iterator[Producer]:
        """A producer for a while; one with which something went wrong is not kept."""
        key = tuple(sorted(settings.items()))
        producer = self._take(key) or self._make(settings)
        try:
            yield producer
        except BaseException:
            # What it still holds is of a task that fails, and will be written by the next attempt.
            producer.close(timeout_s=0)
            raise
        self._keep(key, producer)

    def close(self) -> None:
        """Close all that nobody has at the moment."""
        with self._lock:
            idle, self._idle = self._idle, {}
        for producer, timer in idle.values():
            timer.cancel()
            producer.close()

    def _take(self, key: _Key) -> Producer | None:
        with self._lock:
            found = self._idle.pop(key, None)
        if found is None:
            return None
        found[1].cancel()
        return found[0]

    def _keep(self, key: _Key, producer: Producer) -> None:
        timer = threading.Timer(self._idle_s, self._expire, (key, producer))
        timer.daemon = True
        with self._lock:
            before = self._idle.pop(key, None)
            self._idle[key] = (producer, timer)
        timer.start()
        if before is not None:
            before[1].cancel()
            before[0].close()

    def _expire(self, key: _Key, producer: Producer) -> None:
        with self._lock:
            if key not in self._idle or self._idle[key][0] is not producer:
                return
            del self._idle[key]
        producer.close()


#: Of this process.
PRODUCERS: Final = ProducerCache()
