"""One broker for the tests of a file."""

from collections.abc import Iterator

import pytest

from headwater.testing.running_broker import RunningBroker


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    # Tests give records times of long ago.
    with RunningBroker(settings={"log.retention.ms": "-1"}) as running:
        yield running
