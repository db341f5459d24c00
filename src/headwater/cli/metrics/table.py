"""A broker's metrics as tables for people: the figures that operators watch, requests, topics.

Counters are shown as rates, from two readings some time apart; with one reading, as totals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from headwater.cli.metrics.page import MetricsPage
from headwater.cli.output.colour import Tone
from headwater.cli.output.plain_table import Column, Row, print_table
from headwater.cli.output.sizes import size_text

#: Below this share of idle time a broker is near its limit.
IDLE_SHARE_MIN: Final = 0.30
TOPICS_SHOWN_MAX: Final = 20


class Readings(NamedTuple):
    """A page and, where there is one, an earlier one of `seconds` before."""

    now: MetricsPage
    before: MetricsPage | None = None
    seconds: float = 0.0

    def rate(self, name: str) -> float | None:
        """What a counter gained in a second."""
        if self.before is None or self.seconds <= 0:
            return None
        new, old = self.now.value(name), self.before.value(name)
        if new is None or old is None or new < old:
            return None
        return (new - old) / self.seconds


class Figure(NamedTuple):
    """A row: Kafka's name for it, the metric, how it is written, and when it is bad."""

    title: str
    metric: str
    write: Callable[[float], str]
    meaning: str
    is_counter: bool = False
    is_bad: Callable[[float], bool] = lambda _value: False


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _number(value: float) -> str:
    return f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"


def _percent(value: float) -> str:
    return f"{value:.0%}"


# fmt: off
FIGURES: Final = (
    Figure("BytesIn", "headwater_bytes_in_total", size_text, "record batches from producers",
           is_counter=True),
    Figure("BytesOut", "headwater_bytes_out_total", size_text, "record batches to consumers",
           is_counter=True),
    Figure("MessagesIn", "headwater_messages_in_total", _number, "records from producers",
           is_counter=True),
    Figure("NetworkProcessorAvgIdlePercent", "headwater_network_processor_avg_idle_percent",
           _percent, "idle share of the event loop", is_bad=lambda value: value < IDLE_SHARE_MIN),
    Figure("RequestHandlerAvgIdlePercent", "headwater_request_handler_avg_idle_percent",
           _percent, "idle share of the disk threads", is_bad=lambda value: value < IDLE_SHARE_MIN),
    Figure("UnderReplicatedPartitions", "headwater_under_replicated_partitions", _count,
           "partitions with replicas out of sync", is_bad=lambda value: value > 0),
    Figure("UnderMinIsrPartitionCount", "headwater_under_min_isr_partitions", _count,
           "partitions that refuse acks=all", is_bad=lambda value: value > 0),
    Figure("OfflinePartitionsCount", "headwater_offline_partitions", _count,
           "partitions without a leader", is_bad=lambda value: value > 0),
    Figure("ActiveControllerCount", "headwater_active_controller_count", _count,
           "1 on one broker of the cluster"),
    Figure("IsrShrinks", "headwater_isr_shrinks_total", _number, "replicas that fell behind",
           is_counter=True),
    Figure("IsrExpands", "headwater_isr_expands_total", _number, "replicas that caught up",
           is_counter=True),
    Figure("ReplicationBytesIn", "headwater_replication_bytes_in_total", size_text,
           "record batches from leaders", is_counter=True),
    Figure("ReplicationBytesOut", "headwater_replication_bytes_out_total", size_text,
           "record batches to followers", is_counter=True),
    Figure("MaxLag", "headwater_replica_max_lag", _count, "records behind a leader, at most"),
    Figure("Connections", "headwater_connections", _count, "open now"),
    Figure("QueuedRequestBytes", "headwater_queued_request_bytes", size_text,
           "requests in memory"),
    Figure("PurgatorySize", "headwater_purgatory_size", _count, "requests that wait"),
    Figure("FsyncRounds", "headwater_fsync_rounds_total", _number, "shared syncs of logs",
           is_counter=True),
    Figure("Partitions", "headwater_partitions", _count, "replicas on this broker"),
    Figure("LogSize", "headwater_log_size_bytes", size_text, "all logs"),
    Figure("Memory", "process_resident_memory_bytes", size_text, "resident"),
    Figure("OpenFiles", "process_open_fds", _count, "files and sockets"),
)
# fmt: on


class RequestRow(NamedTuple):
    """How an API did: since the broker started, and between the readings if it was used then."""

    api: str
    request_count: float
    per_second: float | None
    mean_s: float
    p50_s: float
    p99_s: float
    error_count: float


class TopicRow(NamedTuple):
    topic: str
    bytes_in: float
    bytes_out: float
    records_in: float
    log_size_bytes: float


def print_tables(title: str, readings: Readings) -> None:
    print_table(title, _FIGURE_COLUMNS, [_figure_cells(*row) for row in figures(readings)])
    if rows := requests(readings):
        print_table("Requests", _REQUEST_COLUMNS, [_request_cells(row) for row in rows])
    if topics := largest_topics(readings.now):
        shown = topics[:TOPICS_SHOWN_MAX]
        print_table("Topics", _TOPIC_COLUMNS, [_topic_cells(row) for row in shown])


def figures(readings: Readings) -> Iterator[tuple[Figure, float, float | None]]:
    """Each figure that the page has, its value, and for a counter what it gained in a second."""
    for figure in FIGURES:
        value = readings.now.value(figure.metric)
        if value is not None:
            rate = readings.rate(figure.metric) if figure.is_counter else None
            yield figure, value, rate


def requests(readings: Readings) -> list[RequestRow]:
    name = "headwater_request_seconds"
    before = {} if readings.before is None else readings.before.histograms(name, "api")
    errors = readings.now.by_label("headwater_errors_total", "api")
    rows = []
    for api, histogram in sorted(readings.now.histograms(name, "api").items()):
        recent = histogram.since(before.get(api)) if readings.before is not None else histogram
        # An API that was not used between the readings still shows how it did before.
        shown = recent if recent.count > 0 else histogram
        rate = recent.count / readings.seconds if readings.seconds > 0 else None
        median_s, slowest_s = shown.quantile(0.5), shown.quantile(0.99)
        error_count = errors.get(api, 0)
        rows.append(
            RequestRow(api, histogram.count, rate, shown.mean, median_s, slowest_s, error_count)
        )
    return rows


def largest_topics(page: MetricsPage) -> list[TopicRow]:
    """All topics, the largest first."""
    columns = [page.by_label(name, "topic") for name in _TOPIC_METRICS]
    sizes = columns[-1]
    names = sorted(set().union(*columns) - {""}, key=lambda name: (-sizes.get(name, 0), name))
    return [TopicRow(name, *(column.get(name, 0.0) for column in columns)) for name in names]


_TOPIC_METRICS: Final = (
    "headwater_topic_bytes_in_total",
    "headwater_topic_bytes_out_total",
    "headwater_topic_messages_in_total",
    "headwater_log_size_bytes",
)


def _tone(value: object) -> Tone | None:
    return Tone.BAD if str(value).endswith("!") else None


_FIGURE_COLUMNS: Final = (
    Column("METRIC", "metric"),
    Column("VALUE", "value", is_number=True, tone=_tone),
    Column("MEANING", "meaning"),
)
_REQUEST_COLUMNS: Final = (
    Column("API", "api"),
    *(
        Column(header, header, is_number=True)
        for header in ("COUNT", "PER-SECOND", "MEAN-MS", "P50-MS<", "P99-MS<", "ERRORS")
    ),
)
_TOPIC_COLUMNS: Final = (
    Column("TOPIC", "topic"),
    *(
        Column(header, header, is_number=True)
        for header in ("BYTES-IN", "BYTES-OUT", "RECORDS-IN", "LOG-SIZE")
    ),
)


def _figure_cells(figure: Figure, value: float, rate: float | None) -> Row:
    text = figure.write(value) if rate is None else f"{figure.write(rate)}/s"
    if figure.is_bad(value):
        text = f"{text} !"
    return {"metric": figure.title, "value": text, "meaning": figure.meaning}


def _request_cells(row: RequestRow) -> Row:
    return {
        "api": row.api,
        "COUNT": _count(row.request_count),
        "PER-SECOND": None if row.per_second is None else f"{row.per_second:,.1f}",
        "MEAN-MS": _milliseconds(row.mean_s),
        "P50-MS<": _milliseconds(row.p50_s),
        "P99-MS<": _milliseconds(row.p99_s),
        "ERRORS": _count(row.error_count),
    }


def _topic_cells(row: TopicRow) -> Row:
    return {
        "topic": row.topic,
        "BYTES-IN": size_text(row.bytes_in),
        "BYTES-OUT": size_text(row.bytes_out),
        "RECORDS-IN": _count(row.records_in),
        "LOG-SIZE": size_text(row.log_size_bytes),
    }


def _milliseconds(seconds: float) -> str | None:
    if math.isnan(seconds):
        return None
    milliseconds = seconds * 1000
    return f"{milliseconds:,.2f}" if milliseconds < 10 else f"{milliseconds:,.0f}"
