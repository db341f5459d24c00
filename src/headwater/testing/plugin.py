"""The pytest plugin: a Kafka-compatible broker as a fixture.

pytest loads this module in every run of everybody who has Headwater installed, whether they use it
or not. So it imports nothing but pytest; the broker is imported when a fixture is first used.

    headwater_broker        one broker for the whole session
    headwater_topic         the name of a new, empty topic on it, for one test
    headwater_fresh_broker  a broker of its own for one test, with no topics
    headwater_settings      a broker's settings by name; override it to change them
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from headwater.testing.running_broker import RunningBroker


@pytest.fixture(scope="session")
def headwater_settings() -> Mapping[str, str]:
    """Settings for the brokers of these fixtures, by Kafka's names; none unless overridden."""
    return {}


@pytest.fixture(scope="session")
def headwater_broker(headwater_settings: Mapping[str, str]) -> Iterator[RunningBroker]:
    """A Kafka-compatible broker in this process, for all tests; `.bootstrap` is its address."""
    from headwater.testing.running_broker import RunningBroker

    with RunningBroker(settings=headwater_settings) as broker:
        yield broker


@pytest.fixture
def headwater_fresh_broker(headwater_settings: Mapping[str, str]) -> Iterator[RunningBroker]:
    """A Kafka-compatible broker for this test alone, without topics."""
    from headwater.testing.running_broker import RunningBroker

    with RunningBroker(settings=headwater_settings) as broker:
        yield broker


@pytest.fixture
def headwater_topic(headwater_broker: RunningBroker) -> Iterator[str]:
    """The name of a new topic with one partition on `headwater_broker`, deleted afterwards."""
    topic = headwater_broker.create_topic()
    yield topic
    if headwater_broker.is_running and topic in headwater_broker.topics():
        headwater_broker.delete_topic(topic)
