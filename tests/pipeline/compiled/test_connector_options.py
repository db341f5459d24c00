from pathlib import Path

from headwater.pipeline.compiled.connector_options import read_options, sink_write_options
from headwater.pipeline.connector.option_table import Mode
from headwater.pipeline.connector.source_options import SOURCE_OPTIONS
from headwater.pipeline.declared.specs.pipeline import PipelineSpec
from headwater.pipeline.declared.specs.run_mode import Backfill
from headwater.pipeline.declared.specs.sink import SinkSpec
from headwater.pipeline.declared.specs.source import SourceSpec
from headwater.pipeline.sink.sink_options import SINK_OPTIONS

ORDERS = SourceSpec("orders", topics=("orders", "returns"), max_records_per_batch=10)
SPEC = PipelineSpec(
    name="shop",
    bootstrap_servers="somewhere:9092",
    sources=(ORDERS,),
    steps=(),
    sinks=(),
    state_directory=Path("state"),
    kafka={"client.id": "shop-1", "linger.ms": "5", "fetch.min.bytes": "9"},
)


def test_a_stream_asks_for_its_columns_only_and_says_who_it_is() -> None:
    options = read_options(SPEC, ORDERS, {"offset", "value"}, streaming=True)
    assert options == {
        "kafka.bootstrap.servers": "somewhere:9092",
        "kafka.client.id": "shop-1",
        "kafka.fetch.min.bytes": "9",
        "subscribe": "orders,returns",
        "headwater.columns": "value,offset",
        "headwater.group": "shop",
        "maxOffsetsPerTrigger": "10",
        "startingOffsets": "earliest",
    }
    SOURCE_OPTIONS.check(options, Mode.STREAM)


def test_headers_are_read_only_where_they_are_wanted() -> None:
    pattern = SourceSpec("all", pattern="shop-.*", starting_offsets="latest", group="g")
    options = read_options(SPEC, pattern, {"value", "headers"}, streaming=True)
    assert options["includeHeaders"] == "true"
    assert options["headwater.columns"] == "value,headers"
    assert options["subscribePattern"] == "shop-.*"
    assert options["headwater.group"] == "g"
    assert options["startingOffsets"] == "latest"
    SOURCE_OPTIONS.check(options, Mode.STREAM)


def test_a_backfill_begins_with_its_range_and_needs_nothing_there() -> None:
    options = read_options(
        SPEC, ORDERS, {"value"}, streaming=False, backfill=Backfill(1_000, 2_000)
    )
    assert options["startingTimestamp"] == "1000"
    assert options["startingOffsetsByTimestampStrategy"] == "latest"
    assert not options.keys() & {"startingOffsets", "headwater.group", "maxOffsetsPerTrigger"}
    SOURCE_OPTIONS.check(options, Mode.BATCH)


def test_a_table_of_a_topic_is_all_of_it_even_if_a_stream_would_begin_at_its_end() -> None:
    source = SourceSpec("rates", topics=("rates",), streaming=False, starting_offsets="latest")
    options = read_options(SPEC, source, {"value"}, streaming=False)
    assert "startingOffsets" not in options
    SOURCE_OPTIONS.check(options, Mode.BATCH)


def test_a_time_to_start_from_goes_before_offsets_and_own_options_before_all() -> None:
    source = SourceSpec(
        "orders", topics=("orders",), starting_timestamp_ms=7, options={"failOnDataLoss": "false"}
    )
    options = read_options(SPEC, source, {"value"}, streaming=True)
    assert options["startingTimestamp"] == "7"
    assert "startingOffsets" not in options
    assert options["failOnDataLoss"] == "false"


def test_a_sink_writes_with_the_options_of_its_file() -> None:
    sink = SinkSpec("copies", "orders", topic="copies", exactly_once=True)
    options = sink_write_options(SPEC, sink)
    assert options == {
        "kafka.bootstrap.servers": "somewhere:9092",
        "kafka.client.id": "shop-1",
        "kafka.linger.ms": "5",
        "topic": "copies",
        "headwater.exactlyOnce": "true",
    }
    SINK_OPTIONS.check(options)
    assert "topic" not in sink_write_options(SPEC, SinkSpec("s", "orders", topic_column="where"))
