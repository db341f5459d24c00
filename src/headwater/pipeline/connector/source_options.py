"""The options of reading: those of Spark's own Kafka connector, and a few more.

The table is all there is to know about their names; `source_settings` makes values of them.
"""

from __future__ import annotations

from typing import Final

from headwater.pipeline.connector.option_table import (
    AUDIT_STAGE_OPTION,
    BOOTSTRAP_OPTION,
    Mode,
    Option,
    OptionTable,
)

_BATCH, _STREAM = Mode.BATCH, Mode.STREAM
_NO_GROUP = "Tasks read ranges of offsets that the driver has planned, without a consumer group."
_BYTES = "keys and values arrive as bytes; make something else of them with columns of Spark."

# fmt: off
SOURCE_OPTIONS: Final = OptionTable("reading", [
    Option(BOOTSTRAP_OPTION, "The brokers to make the first contact with: host:port, with commas "
           "between several. Needed."),
    Option("subscribe", "The topics to read, with commas between them. One of subscribe, "
           "subscribePattern and assign is needed."),
    Option("subscribePattern", "A regular expression: all topics are read whose whole name matches "
           "it, but for internal ones; in a streaming query also those that are created later."),
    Option("assign", 'The partitions to read, as JSON: {"orders": [0, 1], "payments": [2]}.'),
    Option("startingOffsets", "Where a new query begins: earliest, latest (streaming only), group "
           "(where the group of headwater.group has committed, earliest where it has not), or JSON "
           'with an offset for each partition: {"orders": {"0": 23, "1": -2}}, where -2 is '
           "earliest and -1 latest. A query that goes on from a checkpoint begins there, and "
           "partitions that appear later begin at their first record.",
           "latest for streaming, earliest for batch"),
    Option("endingOffsets", "Where a batch query ends: latest, or JSON with an offset for each "
           "partition, where -1 is latest.", "latest", mode=_BATCH),
    Option("startingTimestamp", "Begin with the first record of each partition that is not older: "
           "milliseconds since 1970. Goes before the two options that follow."),
    Option("startingOffsetsByTimestamp", "The same with a time for each partition, as JSON: "
           '{"orders": {"0": 1735689600000}}. Goes before startingOffsets.'),
    Option("startingOffsetsByTimestampStrategy", "What to do with a partition that has no record "
           "of that time or later: error, or latest to begin at its end.", "error"),
    Option("endingTimestamp", "End before the first record of each partition that is not older: "
           "milliseconds since 1970; where there is none, at the end.", mode=_BATCH),
    Option("endingOffsetsByTimestamp", "The same with a time for each partition, as JSON.",
           mode=_BATCH),
    Option("maxOffsetsPerTrigger", "How many offsets a micro-batch has at most; partitions share "
           "them in proportion to what they have, and each gets at least one.", "no limit",
           mode=_STREAM),
    Option("minOffsetsPerTrigger", "A micro-batch waits until there are so many offsets, or for "
           "maxTriggerDelay. Not heeded by a query that ends with what is there (AvailableNow).",
           "no limit", mode=_STREAM),
    Option("maxTriggerDelay", "For how long a micro-batch waits for minOffsetsPerTrigger, such as "
           "30s or 15m.", "15m", mode=_STREAM),
    Option("minPartitions", "Into how many tasks reading is divided at least: ranges are cut, the "
           "longest most. Without it every partition is one task."),
    Option("maxRecordsPerPartition", "How many offsets one task reads at most.", "no limit"),
    Option("failOnDataLoss", "Whether a query fails if records are gone that it has not read: "
           "deleted, aged out, or with their topic. Otherwise it warns and goes on with what is "
           "there.", "true"),
    Option("includeHeaders", "Whether there is a column `headers`.", "false"),
    Option("kafkaConsumer.pollTimeoutMs", "How long a task waits for records of its range before "
           "it fails.", "120000"),
    Option("fetchOffset.numRetries", "How often looking up offsets is tried again after it has "
           "failed.", "3"),
    Option("fetchOffset.retryIntervalMs", "How long to wait before that.", "10"),
    Option("groupIdPrefix", "In Spark's own connector, how the names of its consumer groups begin.",
           without_effect=_NO_GROUP),
    Option("headwater.group", "The consumer group under which the progress of this source is "
           "committed by `report_lag`, and where `startingOffsets=group` begins.",
           "derived from the query's name, for report_lag"),
    Option(AUDIT_STAGE_OPTION, "Count what is read under this name, for `headwater audit topic`: "
           "each range of a query once, whatever is tried again.", "not counted"),
    Option("headwater.columns", "The columns to read, with commas between them; the others are not "
           "even decoded. A schema with a part of the columns does the same.",
           "all, and headers with includeHeaders"),
    Option("kafka.isolation.level", "read_committed sees transactions once they are committed, and "
           "none that were aborted; read_uncommitted sees all records at once. Spark's own "
           "connector has the latter as its default.", "read_committed"),
    Option("kafka.max.partition.fetch.bytes", "How much a task asks a broker for at once.",
           "8388608"),
    Option("kafka.group.id", "In Spark's own connector, the group that its consumers are in.",
           without_effect=_NO_GROUP),
    Option("kafka.auto.offset.reset", "", refused="use 'startingOffsets'."),
    Option("kafka.key.deserializer", "", refused=_BYTES),
    Option("kafka.value.deserializer", "", refused=_BYTES),
    Option("kafka.enable.auto.commit", "", refused="Spark keeps track of what was read; to see it "
           "as a group's lag, use 'headwater.group' and `report_lag`."),
    Option("kafka.interceptor.classes", "", refused="nothing may change records on their way."),
], elsewhere={
    "topic": "it is for writing; to read a topic, use 'subscribe'.",
    "topics": "use 'subscribe', with commas between topics.",
    "headwater.exactlyOnce": "it is for writing.",
    "path": "there are no files here; use 'subscribe' for a topic.",
})
# fmt: on
