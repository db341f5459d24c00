"""The counters that request handling increments.

Recording is two look-ups and an addition: a request's time goes into the bucket of its number
of bits in microseconds, so that buckets double from one to the next. All else that metrics show is
counted by those whom it concerns, or is state that they hold anyway, and is collected when somebody
asks: see `report`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headwater.wire.api_keys import ApiKey

#: Enough for a request of four years, so that no index needs a check.
_BUCKET_COUNT: Final = 48


class LatencyHistogram:
    """How long the requests of one API took; bucket i counts those under 2**i microseconds."""

    __slots__ = ("counts", "total_s")

    def __init__(self) -> None:
        self.counts = [0] * _BUCKET_COUNT
        self.total_s = 0.0

    @property
    def count(self) -> int:
        return sum(self.counts)

    def cumulative(self, first: int, last: int) -> Iterator[tuple[float, int]]:
        """Upper bound in seconds and the number of requests under it, for buckets in a range."""
        below = sum(self.counts[:first])
        for index in range(first, last + 1):
            below += self.counts[index]
            yield (1 << index) / 1e6, below


class BrokerMetrics:
    """What is counted where it happens; everything is read at scrape time."""

    __slots__ = ("_latencies", "errors")

    def __init__(self) -> None:
        self._latencies = {int(api_key): LatencyHistogram() for api_key in ApiKey}
        #: By API key and error code.
        self.errors: dict[tuple[int, int], int] = {}

    def record_request(self, api_key: int, elapsed_s: float) -> None:
        """A request was answered after so long."""
        latency = self._latencies[api_key]
        latency.total_s += elapsed_s
        latency.counts[int(elapsed_s * 1_000_000).bit_length()] += 1

    def record_error(self, api_key: int, code: int) -> None:
        """An answer, or a part of one, was an error."""
        key = (int(api_key), int(code))
        self.errors[key] = self.errors.get(key, 0) + 1

    def latencies(self) -> Iterator[tuple[ApiKey, LatencyHistogram]]:
        """The APIs that were used."""
        for api_key in ApiKey:
            latency = self._latencies[api_key]
            if any(latency.counts):
                yield api_key, latency
