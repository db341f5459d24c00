"""Exactly once where tasks, drivers and the broker are killed at random, again and again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.spark.sink_campaign import SinkCampaign

QUERY_COUNT = 12
SEED = 20261116


@pytest.mark.full
def test_each_row_is_there_once_whatever_is_killed(tmp_path: Path) -> None:
    campaign = SinkCampaign(tmp_path, SEED)
    try:
        for _ in range(QUERY_COUNT):
            campaign.play_query()
    finally:
        campaign.close()
    # Nearly half of some nine processes a query is killed.
    assert campaign.killed.total() >= QUERY_COUNT, campaign.killed
