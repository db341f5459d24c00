"""What a world does has nothing to do with what is logged of it."""

import logging

import pytest

from headwater.sim.campaigns.cluster import ClusterCampaign


def test_a_trace_is_the_same_with_and_without_a_log(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("headwater")
    before = logger.level
    hashes = []
    try:
        for level in (logging.DEBUG, logging.CRITICAL):
            logger.setLevel(level)
            caplog.clear()
            hashes.append(ClusterCampaign(3).run(event_count=12))
            assert bool(caplog.records) is (level == logging.DEBUG)
    finally:
        logger.setLevel(before)
    assert hashes[0] == hashes[1]
