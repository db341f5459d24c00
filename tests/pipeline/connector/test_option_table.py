"""Options: what may be given, and what a slip is answered with."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.pipeline.connector.option_table import (
    Mode,
    Option,
    OptionError,
    OptionTable,
    boolean_option,
    choice_option,
    client_settings,
    duration_option_ms,
    integer_option,
)
from headwater.pipeline.connector.source_options import SOURCE_OPTIONS

GIVEN = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders"}


def problem(options: dict[str, str], mode: Mode = Mode.STREAM) -> str:
    with pytest.raises(OptionError) as caught:
        SOURCE_OPTIONS.check(options, mode)
    return str(caught.value)


def test_a_misspelt_option_is_answered_with_the_nearest() -> None:
    assert problem({**GIVEN, "startingoffset": "earliest"}) == (
        "Unknown option 'startingoffset': did you mean 'startingOffsets'?"
    )


def test_a_setting_without_its_prefix_is_answered_with_the_prefix() -> None:
    assert "did you mean 'kafka.bootstrap.servers'?" in problem({"bootstrap.servers": "a:1"})
    assert "'kafka.xyzzy'" in problem({**GIVEN, "xyzzy": "1"})


def test_an_option_of_writing_says_what_reads() -> None:
    assert "use 'subscribe'" in problem({**GIVEN, "topic": "orders"})


def test_options_of_the_other_kind_of_query_are_refused() -> None:
    assert "batch queries only" in problem({**GIVEN, "endingOffsets": "latest"})
    assert "stream queries only" in problem({**GIVEN, "maxOffsetsPerTrigger": "5"}, Mode.BATCH)
    SOURCE_OPTIONS.check({**GIVEN, "endingOffsets": "latest"}, Mode.BATCH)
    # Before it is known what kind of query it is, both pass.
    SOURCE_OPTIONS.check({**GIVEN, "endingOffsets": "latest"})


def test_what_would_break_spark_is_refused_with_a_reason() -> None:
    assert "'startingOffsets'" in problem({**GIVEN, "kafka.auto.offset.reset": "earliest"})
    assert "report_lag" in problem({**GIVEN, "kafka.enable.auto.commit": "true"})


def test_brokers_are_needed() -> None:
    assert "'kafka.bootstrap.servers' is missing" in problem({"subscribe": "orders"})


@given(st.sampled_from(list(SOURCE_OPTIONS)), st.data())
def test_names_are_found_in_any_case(option: Option, data: st.DataObject) -> None:
    letters = [data.draw(st.sampled_from([each.lower(), each.upper()])) for each in option.name]
    name = "".join(letters)
    assert SOURCE_OPTIONS[name] is option
    if not option.refused:
        SOURCE_OPTIONS.check({**GIVEN, name: "x"})


@given(st.text(st.characters(categories=["Ll", "Lu"]), min_size=1, max_size=12))
def test_no_other_name_passes(name: str) -> None:
    if name in SOURCE_OPTIONS:
        return
    with pytest.raises(OptionError):
        SOURCE_OPTIONS.check({**GIVEN, name: "x"})


def test_every_option_is_documented() -> None:
    for option in SOURCE_OPTIONS:
        assert option.doc or option.refused, option.name
        assert option.doc.endswith(".") or option.refused, option.name


def test_a_table_has_a_name_once() -> None:
    with pytest.raises(Exception, match="two rows"):
        OptionTable("reading", [Option("a", "A."), Option("A", "B.")])


def test_the_settings_of_the_client_lose_their_prefix() -> None:
    options = {"Kafka.Fetch.Min.Bytes": "5", "subscribe": "orders"}
    assert client_settings(options) == {"fetch.min.bytes": "5"}


@given(st.integers(-(10**20), 10**20))
def test_numbers_have_a_bound(number: int) -> None:
    if number >= 1:
        assert integer_option("n", f" {number} ") == number
    else:
        with pytest.raises(OptionError, match="at least 1"):
            integer_option("n", str(number))


@pytest.mark.parametrize("text", ["", "ten", "1.5", "0x10", "1e3"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match="whole number"):
        integer_option("minPartitions", text)


def test_truth_times_and_choices() -> None:
    assert boolean_option("b", "True") and not boolean_option("b", "false")
    with pytest.raises(OptionError, match="true or false"):
        boolean_option("b", "yes")
    times = {"250": 250, "250ms": 250, "2s": 2000, "15m": 900_000, "1h": 3_600_000}
    assert {text: duration_option_ms("d", text) for text in times} == times
    with pytest.raises(OptionError, match="a time such as"):
        duration_option_ms("d", "fortnight")
    assert choice_option("c", "Latest", ["error", "latest"]) == "latest"
    with pytest.raises(OptionError, match="did you mean 'latest'"):
        choice_option("c", "lastest", ["error", "latest"])
