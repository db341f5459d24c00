"""The options of writing: names, values, and what does not go together."""

from __future__ import annotations

import pytest

from headwater.base.errors import InvalidConfigError
from headwater.base.settings import SettingError
from headwater.pipeline.connector.option_table import Mode, OptionError
from headwater.pipeline.sink.sink_options import SINK_OPTIONS, parse_sink_settings

ADDRESS = {"kafka.bootstrap.servers": "localhost:9092"}


def test_what_options_amount_to() -> None:
    settings = parse_sink_settings(
        {**ADDRESS, "Topic": "orders", "kafka.Linger.ms": "20", "checkpointlocation": "/tmp/c"},
        Mode.STREAM,
    )
    assert settings.topic == "orders"
    assert settings.client["linger.ms"] == "20"
    assert not settings.is_exactly_once
    assert settings.admin_settings()["bootstrap.servers"] == "localhost:9092"
    assert "linger.ms" not in settings.admin_settings()
    once = parse_sink_settings(
        {**ADDRESS, "headwater.exactlyOnce": "TRUE", "headwater.writeId": "daily 2026-11-16"},
        Mode.BATCH,
    )
    assert once.is_exactly_once
    assert once.write_id == "daily 2026-11-16"


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        ("topik", "orders", "did you mean 'topic'"),
        ("subscribe", "orders", "it is for reading; to write to a topic, use 'topic'"),
        ("path", "orders", "there are no files here; use 'topic'"),
        ("topic", "or ders", "The option 'topic' cannot be 'or ders'"),
        ("headwater.exactlyOnce", "yes", "it must be true or false"),
        ("headwater.writeId", "daily", "needs 'headwater.exactlyOnce=true'"),
        ("errors.tolerance", "some", "it must be none or all"),
        ("errors.tolerance", "all", "a sink may not drop rows"),
        ("errors.deadletterqueue.topic.name", "dlq.x", "needs 'errors.tolerance=all'"),
        ("kafka.transactional.id", "mine", "the sink makes its own transactions"),
        ("kafka.buffer.full.policy", "drop", "a sink may not drop records"),
        ("kafka.key.serializer", "some.Class", "keys and values are written as they are"),
        ("kafka.lingering.ms", "5", "did you mean linger.ms"),
        ("kafka.acks", "2", "acks"),
        ("checkpointLocation", "/tmp", "is for stream queries only"),
    ],
)
def test_what_is_refused(option: str, value: str, problem: str) -> None:
    with pytest.raises((OptionError, SettingError, InvalidConfigError), match=problem):
        parse_sink_settings({**ADDRESS, option: value}, Mode.BATCH)


def test_a_broker_has_to_be_named() -> None:
    with pytest.raises(OptionError, match=r"'kafka\.bootstrap\.servers' is missing"):
        parse_sink_settings({"topic": "orders"}, Mode.BATCH)


def test_exactly_once_needs_all_acknowledgements() -> None:
    options = {**ADDRESS, "kafka.acks": "1"}
    assert parse_sink_settings(options, Mode.STREAM).client["acks"] == "1"
    with pytest.raises(SettingError, match="needs acks=all"):
        parse_sink_settings({**options, "headwater.exactlyOnce": "true"}, Mode.STREAM)


def test_a_stream_has_its_name_from_its_checkpoint() -> None:
    with pytest.raises(OptionError, match="is for batch queries only"):
        parse_sink_settings(
            {**ADDRESS, "headwater.exactlyOnce": "true", "headwater.writeId": "w"}, Mode.STREAM
        )


def test_each_row_says_what_it_is() -> None:
    for row in SINK_OPTIONS:
        assert row.doc or row.refused, row.name


def test_where_rows_go_that_cannot_be_written() -> None:
    tolerant = {
        **ADDRESS,
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": "dlq.x",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    settings = parse_sink_settings({**tolerant, "kafka.max.request.size": "5000"}, Mode.STREAM)
    assert settings.tolerance == ("dlq.x", 5000)
    # Letters are larger than their rows.
    assert int(settings.client["max.request.size"]) > 5000
    assert parse_sink_settings(ADDRESS, Mode.STREAM).tolerance is None
    with pytest.raises(OptionError, match=r"'dlq.x', which the rows themselves go to"):
        parse_sink_settings({**tolerant, "topic": "dlq.x"}, Mode.STREAM)
    with pytest.raises(OptionError, match=r"topic.name' cannot be 'd l q'"):
        wrong = {**tolerant, "errors.deadletterqueue.topic.name": "d l q"}
        parse_sink_settings(wrong, Mode.STREAM)
