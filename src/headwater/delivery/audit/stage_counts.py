"""What a stage has counted and not published: by topic, partition and bucket of time, bounded."""

from __future__ import annotations

from typing import Final, NamedTuple

from headwater.delivery.audit.stage_rows import Row

#: So many are told apart between two publications.
COUNTERS_MAX: Final = 10_000


class CountedPlace(NamedTuple):
    topic: str
    partition: int
    bucket_start_ms: int


class _Count:
    __slots__ = ("bytes", "count", "given_up_count", "latency_ms_max", "time_max", "time_min")

    def __init__(self, time_ms: int) -> None:
        self.count = 0
        self.given_up_count = 0
        self.bytes = 0
        self.time_min = self.time_max = time_ms
        self.latency_ms_max = 0


class StageCounts:
    """No clock and no lock: the owner has both."""

    def __init__(self, bucket_ms: int, counters_max: int = COUNTERS_MAX) -> None:
        self._bucket_ms = bucket_ms
        self._counters_max = counters_max
        self._counts: dict[CountedPlace, _Count] = {}
        #: By topic, what there was no counter for.
        self._uncounted: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._counts)

    def add(
        self,
        topic: str,
        partition: int,
        time_ms: int,
        count: int,
        size_bytes: int,
        now_ms: int,
        given_up_count: int = 0,
    ) -> None:
        start_ms = time_ms // self._bucket_ms * self._bucket_ms
        place = CountedPlace(topic, partition, start_ms)
        found = self._counts.get(place)
        if found is None:
            if len(self._counts) >= self._counters_max:
                if topic in self._uncounted or len(self._uncounted) < self._counters_max:
                    self._uncounted[topic] = self._uncounted.get(topic, 0) + count + given_up_count
                return
            found = self._counts[place] = _Count(time_ms)
        found.count += count
        found.given_up_count += given_up_count
        found.bytes += size_bytes
        found.time_min = min(found.time_min, time_ms)
        found.time_max = max(found.time_max, time_ms)
        found.latency_ms_max = max(found.latency_ms_max, now_ms - time_ms)

    def add_row(self, row: Row) -> None:
        """What others have counted, as `take` has given it."""
        topic, partition = row["topic"], row["partition"]
        first_ms, last_ms = row["time_min"], row["time_max"]
        count, given_up_count = row["count"], row["given_up_count"]
        seen_ms = first_ms + row["latency_ms_max"]
        self.add(topic, partition, first_ms, count, row["bytes"], seen_ms, given_up_count)
        self.add(topic, partition, last_ms, 0, 0, last_ms)
        if uncounted := row["uncounted_count"]:
            self._uncounted[topic] = self._uncounted.get(topic, 0) + uncounted

    def take(self, names: Row) -> list[Row]:
        """A row for each counter, which then begins anew."""
        rows = []
        for place, found in self._counts.items():
            row = {
                **names,
                "topic": place.topic,
                "partition": place.partition,
                "time_bucket_start": place.bucket_start_ms,
                "time_bucket_end": place.bucket_start_ms + self._bucket_ms,
                "count": found.count,
                "given_up_count": found.given_up_count,
                "bytes": found.bytes,
                "time_min": found.time_min,
                "time_max": found.time_max,
                "latency_ms_max": found.latency_ms_max,
                # In the first row of its topic.
                "uncounted_count": self._uncounted.pop(place.topic, 0),
            }
            rows.append(row)
        self._counts = {}
        self._uncounted = {}
        return rows
