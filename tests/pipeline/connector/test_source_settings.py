"""What options amount to, and which of them do not go together."""

from __future__ import annotations

import pickle

import pytest

from headwater.base.errors import InvalidConfigError
from headwater.base.ids import TopicPartition
from headwater.pipeline.connector.option_table import Mode
from headwater.pipeline.connector.positions import (
    GivenOffsets,
    GivenTime,
    GivenTimes,
    Place,
)
from headwater.pipeline.connector.source_settings import (
    SourceSettings,
    TopicChoice,
    parse_source_settings,
)

BROKERS = {"kafka.bootstrap.servers": "localhost:9092"}
ORDERS_0 = TopicPartition("orders", 0)


def settings(mode: Mode = Mode.STREAM, /, **options: str) -> SourceSettings:
    return given({"subscribe": "orders", **options}, mode)


def given(options: dict[str, str], mode: Mode = Mode.STREAM) -> SourceSettings:
    return parse_source_settings({**BROKERS, "subscribe": "orders", **options}, mode)


def problem(options: dict[str, str], mode: Mode = Mode.STREAM) -> str:
    with pytest.raises(InvalidConfigError) as caught:
        parse_source_settings({**BROKERS, **options}, mode)
    return str(caught.value)


def test_the_defaults_are_those_of_sparks_connector_but_for_isolation() -> None:
    stream, batch = settings(), settings(Mode.BATCH)
    assert (stream.start, batch.start, batch.end) == (Place.LATEST, Place.EARLIEST, Place.LATEST)
    assert stream.fails_on_data_loss
    assert stream.is_committed_only
    assert (stream.poll_timeout_ms, stream.trigger_delay_ms) == (120_000, 900_000)
    assert stream.offsets_max is stream.offsets_min is stream.task_count_min is None


def test_the_isolation_level_can_be_changed() -> None:
    assert not given({"kafka.isolation.level": "read_uncommitted"}).is_committed_only


def test_exactly_one_choice_of_topics() -> None:
    assert "none is given" in problem({})
    assert "subscribe and assign are given" in problem({"subscribe": "a", "assign": '{"a": [0]}'})


def test_choices_of_topics() -> None:
    assert settings(subscribe=" b, a ,,b").choice == TopicChoice(topics=("a", "b"))
    options = {**BROKERS, "assign": '{"orders": [1, 0, 1]}'}
    assert parse_source_settings(options, Mode.BATCH).choice == TopicChoice(
        partitions=(ORDERS_0, TopicPartition("orders", 1))
    )
    choice = parse_source_settings({**BROKERS, "subscribePattern": "or.*"}, Mode.BATCH).choice
    assert choice.matches("orders") and not choice.matches("my-orders")
    assert not TopicChoice(topics=("orders",)).matches("orders")


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"subscribe": " , "}, "cannot be empty"),
        ({"subscribe": "a b"}, "'subscribe' cannot be 'a b'"),
        ({"subscribePattern": "("}, "not a regular expression"),
        ({"subscribePattern": " "}, "cannot be empty"),
        ({"assign": "orders"}, '{"orders": [0, 1]}'),
        ({"assign": '{"orders": [-1]}'}, '{"orders": [0, 1]}'),
        ({"assign": '{"orders": []}'}, '{"orders": [0, 1]}'),
        ({"subscribe": "a", "startingOffsets": "group"}, "without 'headwater.group'"),
        ({"subscribe": "a", "startingOffsets": "lastest"}, "did you mean 'latest'?"),
        ({"subscribe": "a", "startingOffsets": "7"}, "offsets as JSON"),
        ({"subscribe": "a", "startingOffsets": '{"a": 5}'}, "for each partition"),
        ({"subscribe": "a", "startingOffsets": '{"a": {"0": -3}}'}, "at least -2"),
        ({"subscribe": "a", "startingOffsets": '{"a": {"x": 3}}'}, "for each partition"),
        ({"subscribe": "a", "startingOffsetsByTimestamp": '{"a": {"0": -1}}'}, "at least 0"),
        ({"subscribe": "a", "startingTimestamp": "yesterday"}, "whole number"),
        ({"subscribe": "a", "maxOffsetsPerTrigger": "0"}, "at least 1"),
        ({"subscribe": "a", "failOnDataLoss": "no"}, "true or false"),
        (
            {"subscribe": "a", "minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"},
            "more than 'maxOffsetsPerTrigger'",
        ),
        ({"subscribe": "a", "kafka.isolation.levl": "x"}, "did you mean isolation.level?"),
        ({"subscribe": "a", "kafka.isolation.level": "x"}, "read_committed"),
        ({"subscribe": "a", "kafka.bootstrap.servers": " "}, "bootstrap"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(options: dict[str, str], part: str) -> None:
    sentence = problem(options)
    assert part in sentence
    assert "\n" not in sentence


def test_positions_in_the_order_of_sparks_connector() -> None:
    options = {"startingOffsets": '{"orders": {"0": 5, "1": -1, "2": -2}}'}
    start = given(options).start
    assert isinstance(start, GivenOffsets)
    assert [start.offsets[TopicPartition("orders", n)] for n in range(3)] == [5, -1, -2]
    options["startingOffsetsByTimestamp"] = '{"orders": {"0": 77}}'
    assert given(options).start == GivenTimes({ORDERS_0: 77})
    options["startingTimestamp"] = "99"
    assert given(options).start == GivenTime(99)


def test_a_batch_that_would_read_nothing_is_refused() -> None:
    def of(**options: str) -> str:
        return problem({"subscribe": "orders", **options}, Mode.BATCH)

    assert "'latest' in a batch query" in of(startingOffsets="latest")
    assert "-1, the latest offset" in of(startingOffsets='{"orders": {"0": -1}}')
    assert "-2, the earliest offset" in of(endingOffsets='{"orders": {"0": -2}}')
    assert "'endingOffsets' cannot be 'earliest'" in of(endingOffsets="earliest")


def test_an_admin_gets_only_settings_that_it_has() -> None:
    made = given({"kafka.max.poll.records": "7", "kafka.request.timeout.ms": "9000"})
    assert made.client["max.poll.records"] == "7"
    admin = made.admin_settings()
    assert admin["request.timeout.ms"] == "9000"
    assert "max.poll.records" not in admin and "isolation.level" not in admin


def test_a_group_id_is_accepted_and_left_aside() -> None:
    assert "group.id" not in given({"kafka.group.id": "mine"}).client


def test_settings_travel_to_tasks() -> None:
    made = settings(maxOffsetsPerTrigger="10", startingOffsets='{"orders": {"0": 5}}')
    assert pickle.loads(pickle.dumps(made)) == made
