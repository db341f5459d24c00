"""Which options a source or a sink gives to `format("headwater")`, decided without Spark.

Only the columns that somebody needs are asked for: what is not asked for is not even decoded. A
stream begins where the source says; a batch of a range of time begins with the first record that is
not older than the range and ends at the end: records need not be in the order of their timestamps,
so those of a range may come after later ones, and a filter on the timestamp does the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headwater.base.settings import SettingTable
from headwater.client.settings.consumer_settings import CONSUMER_SETTINGS
from headwater.client.settings.producer_settings import PRODUCER_SETTINGS
from headwater.pipeline.declared.specs.pipeline import PipelineSpec
from headwater.pipeline.declared.specs.run_mode import Backfill
from headwater.pipeline.declared.specs.sink import SinkSpec
from headwater.pipeline.declared.specs.source import SourceSpec

#: The columns of the connector in its order; `headers` is there if asked for.
COLUMNS = (
    "key",
    "value",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "headers",
)


def _clients(spec: PipelineSpec, table: SettingTable) -> dict[str, str]:
    """The file's settings of clients that this kind of client has; a file has one list for all."""
    settings = {f"kafka.{name}": value for name, value in spec.kafka.items() if name in table}
    return {"kafka.bootstrap.servers": spec.bootstrap_servers, **settings}


def read_options(
    spec: PipelineSpec,
    source: SourceSpec,
    columns: Iterable[str],
    *,
    streaming: bool,
    backfill: Backfill | None = None,
    group: str = "",
) -> dict[str, str]:
    """The options for reading these columns of a source's topics."""
    wanted = set(columns)
    options = _clients(spec, CONSUMER_SETTINGS)
    if source.pattern:
        options["subscribePattern"] = source.pattern
    else:
        options["subscribe"] = ",".join(source.topics)
    options["headwater.columns"] = ",".join(name for name in COLUMNS if name in wanted)
    if "headers" in wanted:
        options["includeHeaders"] = "true"
    # Nobody commits the progress of a batch, and a static table always is the whole topic.
    if streaming:
        options["headwater.group"] = group or spec.group(source)
        if source.max_records_per_batch is not None:
            options["maxOffsetsPerTrigger"] = str(source.max_records_per_batch)
    begin_ms = backfill.from_ms if backfill is not None else source.starting_timestamp_ms
    if begin_ms is not None:
        options["startingTimestamp"] = str(begin_ms)
        # A partition without anything newer has nothing to say, which is no reason to fail.
        options["startingOffsetsByTimestampStrategy"] = "latest"
    elif streaming or source.starting_offsets != "latest":
        options["startingOffsets"] = source.starting_offsets
    return {**options, **source.options}


def write_options(
    spec: PipelineSpec, topic: str, options: Mapping[str, str], *, exactly_once: bool
) -> dict[str, str]:
    """The options for writing; without `topic` the rows have a column of that name."""
    found = _clients(spec, PRODUCER_SETTINGS)
    if topic:
        found["topic"] = topic
    if exactly_once:
        found["headwater.exactlyOnce"] = "true"
    return {**found, **options}


def sink_write_options(spec: PipelineSpec, sink: SinkSpec) -> dict[str, str]:
    return write_options(spec, sink.topic, sink.options, exactly_once=sink.exactly_once)
