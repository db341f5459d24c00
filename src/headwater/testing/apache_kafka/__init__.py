"""Apache Kafka itself, to compare with: its node, its tools, what its tools say.

Tests and benches use this package and nothing else to run the original. `resolve` finds or fetches
the release that Headwater is measured against, `KafkaNode` runs a single KRaft node of it in a
given directory, `run_tool` runs one of its command line tools, and `parse_dump` turns the report of
its log dumper into values. `resolve_clients` finds or fetches the newest Java client, which may be
of a later release. Everything runs in Java processes that end with this one.

By hand: `python -m headwater.testing.apache_kafka resolve`, then `... run topics --help`.
"""

from headwater.testing.apache_kafka.dump import parse_dump
from headwater.testing.apache_kafka.dump_values import (
    AbortedTransactionEntry,
    Dump,
    DumpedBatch,
    DumpedFile,
    DumpedRecord,
    OffsetIndexEntry,
    ProducerSnapshotEntry,
    TimeIndexEntry,
)
from headwater.testing.apache_kafka.node import KafkaNode, KafkaNodeError
from headwater.testing.apache_kafka.resolve import (
    CLIENTS_VERSION,
    KAFKA_VERSION,
    ApacheKafkaUnavailableError,
    Installation,
    find_clients,
    find_installation,
    resolve,
    resolve_clients,
)
from headwater.testing.apache_kafka.tools import (
    TOOLS,
    ToolFailedError,
    dump_log,
    run_tool,
    start_tool,
)

__all__ = [
    "CLIENTS_VERSION",
    "KAFKA_VERSION",
    "TOOLS",
    "AbortedTransactionEntry",
    "ApacheKafkaUnavailableError",
    "Dump",
    "DumpedBatch",
    "DumpedFile",
    "DumpedRecord",
    "Installation",
    "KafkaNode",
    "KafkaNodeError",
    "OffsetIndexEntry",
    "ProducerSnapshotEntry",
    "TimeIndexEntry",
    "ToolFailedError",
    "dump_log",
    "find_clients",
    "find_installation",
    "parse_dump",
    "resolve",
    "resolve_clients",
    "run_tool",
    "start_tool",
]
