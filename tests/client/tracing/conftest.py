from collections.abc import Iterator

import pytest

from headwater.testing.running_broker import RunningBroker


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker where all records of topics are traced, unless these say otherwise."""
    settings = {"trace.sample": "1.0", "trace.topic.num.partitions": "2"}
    with RunningBroker(tmp_path_factory.mktemp("broker"), settings=settings) as broker:
        yield broker.bootstrap
