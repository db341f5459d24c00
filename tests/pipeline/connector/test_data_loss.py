"""What is said of records that are gone."""

from __future__ import annotations

import logging

import pytest

from headwater.base.ids import TopicPartition
from headwater.pipeline.connector.data_loss import (
    DataLossError,
    DataLossReport,
    gone_partitions,
    late_new_partitions,
    moved_back,
)

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def test_nothing_is_said_of_what_is_there() -> None:
    assert gone_partitions({A0: 5}, {A0: 5, A1: 0}) is None
    assert late_new_partitions({A1: 0}) is None
    assert moved_back({A0: 5}, {A0: 5, A1: 0}) is None


def test_what_is_gone_is_named() -> None:
    assert (gone_partitions({A0: 5, A1: 1}, {A0: 5}) or "").startswith("a-1 is gone")
    assert (gone_partitions({A0: 5, A1: 1}, {}) or "").startswith("a-0, a-1 are gone")
    assert "a-1 begins at offset 7" in (late_new_partitions({A0: 0, A1: 7}) or "")
    assert "a-0 was read up to offset 5 and now ends at 4" in (moved_back({A0: 5}, {A0: 4}) or "")


def test_a_loss_is_an_error_or_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(DataLossError, match="It is gone") as caught:
        DataLossReport(is_fatal=True).tell("It is gone.")
    assert "failOnDataLoss" in caught.value.advice
    with caplog.at_level(logging.WARNING):
        DataLossReport(is_fatal=False).tell("It is gone.")
    assert "It is gone." in caplog.text
