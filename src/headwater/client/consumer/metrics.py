"""A consumer's metrics, under Kafka's names."""

from __future__ import annotations

from collections.abc import Iterable

from headwater.client.consumer.fetching.partition_state import PartitionState
from headwater.client.fetch.isolation import IsolationLevel
from headwater.client.metric_samples import Samples


class ConsumerMetrics:
    """The loop records fetches and commits, the polling thread what it hands out."""

    def __init__(self, now_s: float) -> None:
        self._fetch_latency_s = Samples(now_s)
        self._throttle_ms = Samples(now_s)
        self._fetch_size_bytes = Samples(now_s)
        self._records = Samples(now_s)
        self._bytes = Samples(now_s)
        self._commit_latency_s = Samples(now_s)
        self._between_polls_s = Samples(now_s)
        self._in_poll_s = Samples(now_s)
        self._polled_s: float | None = None
        self._returned_s: float | None = None
        self.rebalance_count = 0

    # -- the loop's side -------------------------------------------------------------------------

    def fetched(self, latency_s: float, throttle_ms: int, now_s: float) -> None:
        """An answer to a fetch has come."""
        self._fetch_latency_s.record(latency_s, now_s)
        self._throttle_ms.record(throttle_ms, now_s)

    def partition_fetched(self, size_bytes: int, now_s: float) -> None:
        """With that much of one partition."""
        self._fetch_size_bytes.record(size_bytes, now_s)

    def committed(self, latency_s: float, now_s: float) -> None:
        self._commit_latency_s.record(latency_s, now_s)

    # -- the polling thread's side ---------------------------------------------------------------

    def poll_began(self, now_s: float) -> None:
        if self._polled_s is not None:
            self._between_polls_s.record(now_s - self._polled_s, now_s)
        self._polled_s = now_s

    def poll_ended(self, now_s: float) -> None:
        if self._polled_s is not None:
            self._in_poll_s.record(now_s - self._polled_s, now_s)

    def consumed(self, record_count: int, now_s: float) -> None:
        """That many records were handed out."""
        self._records.record(record_count, now_s)

    def bytes_consumed(self, size_bytes: int, now_s: float) -> None:
        """All records of a fetch of that size were handed out."""
        self._bytes.record(size_bytes, now_s)

    # -- looking ---------------------------------------------------------------------------------

    def figures(
        self, states: Iterable[PartitionState], isolation_level: IsolationLevel, now_s: float
    ) -> dict[str, float]:
        """All of them by name; what cannot be said is not a number, as in Kafka."""
        known = list(states)
        lags = [lag for state in known if (lag := lag_of(state, isolation_level)) is not None]
        leads = [
            state.offset - state.log_start_offset
            for state in known
            if state.has_position and state.log_start_offset >= 0
        ]
        nan = float("nan")
        between_s = self._between_polls_s.average(now_s)
        latency, throttle = self._fetch_latency_s, self._throttle_ms
        return {
            "records-lag-max": max(lags, default=nan),
            "records-lead-min": min(leads, default=nan),
            "records-consumed-rate": self._records.rate(now_s),
            "records-consumed-total": self._records.total,
            "bytes-consumed-rate": self._bytes.rate(now_s),
            "bytes-consumed-total": self._bytes.total,
            "records-per-request-avg": self._records.total / max(1, latency.total_count),
            "fetch-rate": latency.count_rate(now_s),
            "fetch-total": latency.total_count,
            "fetch-latency-avg": latency.average(now_s) * 1000,
            "fetch-latency-max": latency.largest(now_s) * 1000,
            "fetch-size-avg": self._fetch_size_bytes.average(now_s),
            "fetch-size-max": self._fetch_size_bytes.largest(now_s),
            "fetch-throttle-time-avg": throttle.average(now_s),
            "fetch-throttle-time-max": throttle.largest(now_s),
            "commit-rate": self._commit_latency_s.count_rate(now_s),
            "commit-total": self._commit_latency_s.total_count,
            "commit-latency-avg": self._commit_latency_s.average(now_s) * 1000,
            "commit-latency-max": self._commit_latency_s.largest(now_s) * 1000,
            "time-between-poll-avg": between_s * 1000,
            "time-between-poll-max": self._between_polls_s.largest(now_s) * 1000,
            "poll-idle-ratio-avg": self._in_poll_s.average(now_s) / between_s if between_s else nan,
            "last-poll-seconds-ago": nan if self._polled_s is None else now_s - self._polled_s,
            "assigned-partitions": len(known),
            "rebalance-total": self.rebalance_count,
        }


def lag_of(state: PartitionState, isolation_level: IsolationLevel) -> int | None:
    """How far a consumer is behind: the end that it can read up to, minus its position.

    The end is the high watermark, or with read committed the last stable offset. Every answer to a
    fetch carries both, so while a partition is being read its lag is known without asking. None
    where nothing was fetched yet, or where the position is not known.
    """
    end_offset = state.end_offset(isolation_level)
    if end_offset < 0 or not state.has_position:
        return None
    return max(0, end_offset - state.offset)
