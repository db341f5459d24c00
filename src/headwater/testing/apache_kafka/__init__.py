"""Apache Kafka itself, to compare with: its node, its tools, what its tools say.

Tests and benches use this package and nothing else to run the original. `resolve` finds or fetches
the one release that Headwater is measured against, `KafkaNode` runs a single KRaft node of it in a
given directory, `run_tool` runs one of its command line tools, and `parse_dump` turns the report of
its log dumper into values. Everything runs in Java processes that end with this one.

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
    KAFKA_VERSION,
    ApacheKafkaUnavailableError,
    Installation,
    find_installation,
    resolve,
)
from headwater.testing.apache_kafka.tools import (
    TOOLS,
    ToolFailedError,
    dump_log,
    run_tool,
    start_tool,
)

__all__ = [
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
    "find_installation",
    "parse_dump",
    "resolve",
    "run_tool",
    "start_tool",
]
