"""What the parts of a broker are told at its start: here, how it registers."""

import socket

import pytest

from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.broker.settings.static_settings import static_of
from headwater.broker.start.options import broker_info
from headwater.cluster.image.image import EndpointInfo
from headwater.net.endpoint import Endpoint

LISTENING = [Endpoint("PLAINTEXT", "0.0.0.0", 9092), Endpoint("INSIDE", "10.0.0.1", 9093)]


@pytest.mark.parametrize(
    ("zookeeper", "host"),
    [
        ("zoo:2181", socket.gethostname()),
        # Alone, or with others in this process: wherever a client reaches one, it finds all.
        (None, "0.0.0.0"),
    ],
)
def test_a_listener_on_every_address_registers_its_machine_where_there_are_others(
    zookeeper: str | None, host: str
) -> None:
    texts = {} if zookeeper is None else {"zookeeper.connect": zookeeper}
    registered = broker_info(BrokerSettings(static_of(texts)), 1, LISTENING)
    assert registered.endpoints == (
        EndpointInfo("PLAINTEXT", host, 9092),
        EndpointInfo("INSIDE", "10.0.0.1", 9093),
    )
