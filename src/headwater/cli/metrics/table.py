"""A broker's metrics as tables for people: the figures that operators watch, requests, topics.

Counters are shown as rates, from two readings some time apart; with one reading, as totals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from rich.console import Console
from rich.table import Table

from headwater.cli.metrics.page import MetricsPage
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


def print_tables(console: Console, title: str, readings: Readings) -> None:
    console.print(_figures(title, readings))
    for table in (_requests(readings), _topics(readings)):
        if table.row_count:
            console.print(table)


def _figures(title: str, readings: Readings) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None)
    table.add_column("Metric")
    table.add_column("Value", justify="right")
    table.add_column("", style="dim")
    for figure in FIGURES:
        value = readings.now.value(figure.metric)
        if value is None:
            continue
        text = figure.write(value)
        rate = readings.rate(figure.metric) if figure.is_counter else None
        if rate is not None:
            text = f"{figure.write(rate)}/s"
        if figure.is_bad(value):
            text = f"[bold red]{text} ![/]"
        table.add_row(figure.title, text, figure.meaning)
    return table


def _requests(readings: Readings) -> Table:
    table = Table(title="Requests", title_justify="left", title_style="bold", box=None)
    table.add_column("API")
    for column in ("count", "per second", "mean ms", "p50 ms <", "p99 ms <", "errors"):
        table.add_column(column, justify="right")
    name = "headwater_request_seconds"
    before = {} if readings.before is None else readings.before.histograms(name, "api")
    errors = readings.now.by_label("headwater_errors_total", "api")
    for api, histogram in sorted(readings.now.histograms(name, "api").items()):
        recent = histogram.since(before.get(api)) if readings.before is not None else histogram
        # An API that was not used between the readings still shows how it did before.
        shown = recent if recent.count > 0 else histogram
        rate = f"{recent.count / readings.seconds:,.1f}" if readings.seconds > 0 else "-"
        table.add_row(
            api,
            _count(histogram.count),
            rate,
            _milliseconds(shown.mean),
            _milliseconds(shown.quantile(0.5)),
            _milliseconds(shown.quantile(0.99)),
            _count(errors.get(api, 0)),
        )
    return table


def _topics(readings: Readings) -> Table:
    table = Table(title="Topics", title_justify="left", title_style="bold", box=None)
    table.add_column("Topic")
    for column in ("bytes in", "bytes out", "records in", "log size"):
        table.add_column(column, justify="right")
    for topic, *values in _largest_topics(readings.now):
        table.add_row(topic, *(write(value) for write, value in zip(_WRITERS, values, strict=True)))
    return table


_TOPIC_METRICS: Final = (
    "headwater_topic_bytes_in_total",
    "headwater_topic_bytes_out_total",
    "headwater_topic_messages_in_total",
    "headwater_log_size_bytes",
)
_WRITERS: Final = (size_text, size_text, _count, size_text)


def _largest_topics(page: MetricsPage) -> Iterator[tuple[str, float, float, float, float]]:
    columns = [page.by_label(name, "topic") for name in _TOPIC_METRICS]
    sizes = columns[-1]
    names = sorted(set().union(*columns) - {""}, key=lambda name: (-sizes.get(name, 0), name))
    for name in names[:TOPICS_SHOWN_MAX]:
        a, b, c, d = (column.get(name, 0.0) for column in columns)
        yield name, a, b, c, d


def _milliseconds(seconds: float) -> str:
    if math.isnan(seconds):
        return "-"
    milliseconds = seconds * 1000
    return f"{milliseconds:,.2f}" if milliseconds < 10 else f"{milliseconds:,.0f}"
