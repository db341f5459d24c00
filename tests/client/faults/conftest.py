from collections.abc import Iterator

import pytest

from tests.support.other_clients.brokers import broker_kinds
from tests.support.proxies.proxied_broker import ProxiedBroker, proxied_broker


@pytest.fixture(scope="module", params=broker_kinds())
def proxied(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProxiedBroker]:
    with proxied_broker(request.param, tmp_path_factory.mktemp("faults")) as proxied:
        yield proxied
