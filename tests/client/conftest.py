from collections.abc import Iterator

import pytest

from tests.support.brokers.clusters import KINDS, Cluster, running_cluster


@pytest.fixture(scope="module", params=KINDS)
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """A cluster to use the real thing on."""
    yield from running_cluster(request.param, tmp_path_factory.mktemp("cluster"))
