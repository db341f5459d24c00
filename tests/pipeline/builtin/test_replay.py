"""What a user may give to a replay, and what is refused with a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from headwater.base.errors import KafkaError
from headwater.pipeline.builtin.replay import replay_to_topic


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"from_time": "yesterdy"}, "variable 'from'"),
        ({"until_time": "soon"}, "variable 'until'"),
        ({"records_per_second": 0}, "must be a number above 0, not 0"),
        ({"records_per_second": "fast"}, "must be a number above 0, not 'fast'"),
        ({}, "There is no lake table at"),
    ],
)
def test_wrong_input_is_refused_before_anything_is_written(
    tmp_path: Path, given: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(KafkaError, match=sentence):
        replay_to_topic(
            spark=cast(SparkSession, None),
            bootstrap_servers="127.0.0.1:1",
            lake=str(tmp_path / "none"),
            topic="orders",
            target="again",
            **given,
        )
