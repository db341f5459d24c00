"""All that a broker shows to Prometheus, collected when it is asked.

Names are Kafka's in snake case with the prefix `headwater_`; each HELP names the MBean that shows
the same in Kafka. Rates are counters here: Prometheus computes rates itself.

`metrics.partitions.max` bounds the report: with more partitions, logs are shown by topic, and with
more topics than that, only the broker's totals are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final

from headwater import __version__
from headwater.base.errors import ErrorCode
from headwater.broker.context import BrokerContext
from headwater.broker.metrics.audit_metrics import audit_metrics
from headwater.broker.metrics.controller_metrics import controller_metrics
from headwater.broker.metrics.dead_letter_metrics import dead_letter_metrics
from headwater.broker.metrics.delay_metrics import delay_metrics
from headwater.broker.metrics.exposition import (
    LINES_PER_PIECE,
    Sample,
    counter,
    gauge,
    histogram,
    labels,
)
from headwater.broker.metrics.group_metrics import group_metrics
from headwater.broker.metrics.load_meter import LoadMeter
from headwater.broker.metrics.process_figures import process_metrics
from headwater.broker.metrics.replication_metrics import load_metrics, replication_metrics
from headwater.broker.metrics.telemetry_metrics import telemetry_metrics
from headwater.broker.metrics.transaction_metrics import transaction_metrics
from headwater.net.limits import ConnectionLimits
from headwater.replication.partition.partition import Partition
from headwater.wire.api_keys import ApiKey

#: The buckets of latencies that are shown: from 64 microseconds to 67 seconds.
_BUCKET_FIRST: Final = 6
_BUCKET_LAST: Final = 26
_TOPIC_METRICS: Final = "kafka.server:type=BrokerTopicMetrics"


class MetricsReport:
    """The figures of one broker; `pieces` gives the text, a bounded part at a time."""

    def __init__(self, broker: BrokerContext, limits: ConnectionLimits, load: LoadMeter) -> None:
        self._broker = broker
        self._limits = limits
        self._load = load

    def pieces(self) -> Iterator[str]:
        return chain(
            gauge(
                "headwater_build_info",
                "The running release.",
                [(labels({"version": __version__, "node_id": self._broker.node_id}), 1)],
            ),
            gauge(
                "headwater_clock_seconds",
                "The broker's wall clock when it was asked, in seconds since 1970.",
                [("", self._broker.clock.wall_ms() / 1000)],
            ),
            self._traffic(),
            load_metrics(self._load),
            replication_metrics(self._broker),
            controller_metrics(self._broker),
            self._requests(),
            self._waiting(),
            self._connections(),
            self._logs(),
            group_metrics(self._broker, self._shown_max),
            transaction_metrics(self._broker),
            delay_metrics(self._broker, self._shown_max),
            dead_letter_metrics(self._broker, self._shown_max),
            audit_metrics(self._broker),
            telemetry_metrics(self._broker),
            process_metrics(),
        )

    # -- traffic ---------------------------------------------------------------------------------

    def _traffic(self) -> Iterator[str]:
        partitions, gone = list(self._broker.partitions), self._broker.partitions.gone
        totals = (
            ("bytes_in", "BytesInPerSec", "Bytes of record batches that producers sent."),
            ("bytes_out", "BytesOutPerSec", "Bytes of record batches that consumers got."),
            ("messages_in", "MessagesInPerSec", "Records that producers sent."),
        )
        by_topic: dict[str, list[Partition]] = defaultdict(list)
        for partition in partitions:
            by_topic[partition.topic_partition.topic].append(partition)
        for attribute, bean, text in totals:
            read: Callable[[object], int] = _reader(attribute)
            total = sum(map(read, partitions)) + read(gone)
            help_text = f"{text} Kafka: {_TOPIC_METRICS},name={bean}"
            yield from counter(f"headwater_{attribute}_total", help_text, [("", total)])
            if len(by_topic) <= self._shown_max:
                yield from counter(
                    f"headwater_topic_{attribute}_total",
                    f"{help_text},topic=...",
                    (
                        (labels({"topic": topic}), sum(map(read, some)))
                        for topic, some in by_topic.items()
                    ),
                )
        yield from counter(
            "headwater_fsync_rounds_total",
            "Shared fsyncs: syncs of a log, each for all appends that waited for it.",
            [("", sum(each.fsync_rounds for each in partitions) + gone.fsync_rounds)],
        )

    @property
    def _shown_max(self) -> int:
        return self._broker.settings.integer("metrics.partitions.max")

    # -- requests --------------------------------------------------------------------------------

    def _requests(self) -> Iterator[str]:
        metrics = self._broker.metrics
        yield from histogram(
            "headwater_request_seconds",
            "From the arrival of a request to its answer; the count is the number of requests. "
            "Kafka: kafka.network:type=RequestMetrics,name=TotalTimeMs,request=... "
            "and name=RequestsPerSec",
            (
                (
                    {"api": _api_name(api_key)},
                    latency.cumulative(_BUCKET_FIRST, _BUCKET_LAST),
                    latency.count,
                    latency.total_s,
                )
                for api_key, latency in metrics.latencies()
            ),
        )
        yield from counter(
            "headwater_errors_total",
            "Errors in answers. Kafka: kafka.network:type=RequestMetrics,name=ErrorsPerSec",
            (
                (
                    labels(
                        {
                            "api": _api_name(ApiKey(api_key)),
                            "error": ErrorCode.from_wire(code).name,
                        }
                    ),
                    count,
                )
                for (api_key, code), count in metrics.errors.items()
            ),
        )

    def _waiting(self) -> Iterator[str]:
        purgatories = self._broker.parked.by_name()
        bean = "Kafka: kafka.server:type=DelayedOperationPurgatory,name="
        yield from gauge(
            "headwater_purgatory_size",
            f"Requests that wait. {bean}PurgatorySize,delayedOperation=...",
            (
                (labels({"operation": name}), len(purgatory))
                for name, purgatory in purgatories.items()
            ),
        )
        yield from counter(
            "headwater_purgatory_expired_total",
            "Requests whose time was over before what they waited for. "
            "Kafka: kafka.server:type=DelayedOperationPurgatory,name=ExpiresPerSec",
            (
                (labels({"operation": name}), purgatory.expired_count)
                for name, purgatory in purgatories.items()
            ),
        )

    def _connections(self) -> Iterator[str]:
        counters = self._limits.counters
        yield from gauge(
            "headwater_connections",
            "Open connections. Kafka: kafka.server:type=socket-server-metrics,"
            "name=connection-count",
            [("", counters.open)],
        )
        for name, value, text in (
            ("connections_created", counters.created, "Connections that were accepted."),
            ("connections_closed", counters.closed, "Connections that have ended."),
            ("connections_refused", counters.refused, "Connections above max.connections."),
            ("network_received_bytes", counters.bytes_in, "All bytes that came in."),
            ("network_sent_bytes", counters.bytes_out, "All bytes that went out."),
        ):
            yield from counter(f"headwater_{name}_total", text, [("", value)])
        yield from gauge(
            "headwater_queued_request_bytes",
            "Bytes of requests in memory, see queued.max.request.bytes.",
            [("", self._limits.budget.held_bytes)],
        )

    # -- logs ------------------------------------------------------------------------------------

    def _logs(self) -> Iterator[str]:
        partitions = list(self._broker.partitions)
        if len(partitions) > self._shown_max:
            return self._logs_by_topic(partitions)
        beans = "Kafka: kafka.log:type=Log,name="
        named = [
            (labels({"topic": topic, "partition": number}), partition)
            for partition in partitions
            for topic, number in (partition.topic_partition,)
        ]
        families = (
            ("headwater_log_size_bytes", f"Size of the log. {beans}Size", _size),
            ("headwater_log_start_offset", f"First offset. {beans}LogStartOffset", _start),
            ("headwater_log_end_offset", f"Next offset. {beans}LogEndOffset", _end),
        )
        return chain.from_iterable(
            gauge(name, help_text, _samples(named, read)) for name, help_text, read in families
        )

    def _logs_by_topic(self, partitions: list[Partition]) -> Iterator[str]:
        sizes: dict[str, int] = defaultdict(int)
        for count, partition in enumerate(partitions):
            sizes[partition.topic_partition.topic] += partition.log.size_bytes
            if count % LINES_PER_PIECE == 0:
                # Nothing to show yet, but others may want a turn.
                yield ""
        yield from gauge(
            "headwater_topic_log_size_bytes",
            "Size of the logs of a topic here, shown where there are too many partitions to show "
            "each.",
            [(labels({"topic": topic}), size) for topic, size in sizes.items()]
            if len(sizes) <= self._shown_max
            else [("", sum(sizes.values()))],
        )


def _samples(
    named: list[tuple[str, Partition]], read: Callable[[Partition], int]
) -> Iterator[Sample]:
    return ((names, read(partition)) for names, partition in named)


def _size(partition: Partition) -> int:
    return partition.log.size_bytes


def _start(partition: Partition) -> int:
    return partition.log_start_offset


def _end(partition: Partition) -> int:
    return partition.log_end_offset


def _reader(attribute: str) -> Callable[[object], int]:
    """Reads a counter of a partition, or of what is left of those that are gone."""

    def read(owner: object) -> int:
        value = getattr(owner, attribute)
        return value if isinstance(value, int) else 0

    return read


def _api_name(api_key: ApiKey) -> str:
    """An API as Kafka writes it: `Produce`, `ListOffsets`."""
    return "".join(word.capitalize() for word in api_key.name.split("_"))
