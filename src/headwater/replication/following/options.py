"""How a follower fetches: the `replica.fetch.*` settings and their kin, as they hold right now."""

from __future__ import annotations

from typing import NamedTuple

from headwater.base.settings import SettingValues


class FetcherOptions(NamedTuple):
    """With Kafka's defaults. They may change while the broker runs, so whoever uses them asks."""

    min_bytes: int = 1
    max_wait_ms: int = 500
    #: Of one answer, and of one partition in it.
    max_bytes: int = 10 << 20
    max_partition_bytes: int = 1 << 20
    #: The longest pause after an error.
    backoff_ms: int = 1_000
    socket_timeout_ms: int = 30_000
    #: Connections to each leader, which share its partitions.
    fetcher_count: int = 1

    @classmethod
    def from_settings(cls, settings: SettingValues) -> FetcherOptions:
        return cls(
            min_bytes=settings.integer("replica.fetch.min.bytes"),
            max_wait_ms=settings.integer("replica.fetch.wait.max.ms"),
            max_bytes=settings.integer("replica.fetch.response.max.bytes"),
            max_partition_bytes=settings.integer("replica.fetch.max.bytes"),
            backoff_ms=settings.integer("replica.fetch.backoff.ms"),
            socket_timeout_ms=settings.integer("replica.socket.timeout.ms"),
            fetcher_count=settings.integer("num.replica.fetchers"),
        )
