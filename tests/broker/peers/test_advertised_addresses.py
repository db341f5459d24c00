"""What brokers register, and what a client is told of each of them."""

import pytest

from headwater.broker.peers.advertised_addresses import ClientSide, registered_endpoints
from headwater.cluster.image.image import BrokerInfo, EndpointInfo
from headwater.net.endpoint import Endpoint, parse_endpoints


def broker(*addresses: str, machine_name: str | None = None) -> BrokerInfo:
    """One that listens there, in a process of its own on a named machine, or with all others."""
    listeners = parse_endpoints(",".join(addresses))
    return BrokerInfo(1, registered_endpoints({}, listeners, machine_name))


def test_a_client_is_told_what_a_broker_registered_for_its_listener() -> None:
    two = broker("PLAINTEXT://10.0.0.2:9092", "OUTSIDE://two.example:443")
    assert ClientSide("PLAINTEXT", "10.0.0.1").address_of(two) == ("10.0.0.2", 9092)
    assert ClientSide("OUTSIDE", "10.0.0.1").address_of(two) == ("two.example", 443)
    assert ClientSide("ELSEWHERE", "10.0.0.1").address_of(two) is None


@pytest.mark.parametrize("arrived", ["127.0.0.1", "::1", "192.0.2.7"])
def test_a_name_that_was_given_to_listen_on_stays_one(arrived: str) -> None:
    assert ClientSide("PLAINTEXT", arrived).address_of(broker("localhost:9092")) == (
        "localhost",
        9092,
    )


@pytest.mark.parametrize(
    ("listening", "arrived", "told"),
    [
        ("0.0.0.0:9093", "192.0.2.7", "192.0.2.7"),
        ("0.0.0.0:9093", "127.0.0.1", "127.0.0.1"),
        (":9093", "192.0.2.7", "192.0.2.7"),
        (":9093", "2001:db8::5", "2001:db8::5"),
        # Who dials localhost arrives at either of these.
        (":9093", "127.0.0.1", "127.0.0.1"),
        (":9093", "::1", "127.0.0.1"),
        ("[::]:9093", "::1", "::1"),
        ("[::]:9093", "2001:db8::5", "2001:db8::5"),
        # A network that does not tell where a connection arrived, or only by name.
        ("0.0.0.0:9093", "", ""),
        ("0.0.0.0:9093", "broker-1", "broker-1"),
    ],
)
def test_brokers_of_one_machine_are_where_the_client_reached_it(
    listening: str, arrived: str, told: str
) -> None:
    # Whichever broker answers, and whichever it is asked about.
    assert ClientSide("PLAINTEXT", arrived).address_of(broker(listening)) == (told, 9093)


@pytest.mark.parametrize("listening", ["0.0.0.0:9093", ":9093", "[::]:9093"])
@pytest.mark.parametrize("arrived", ["127.0.0.1", "192.0.2.7", "2001:db8::5"])
def test_brokers_of_several_machines_are_told_by_the_names_of_these(
    listening: str, arrived: str
) -> None:
    told = ClientSide("PLAINTEXT", arrived).address_of(broker(listening, machine_name="one"))
    assert told == ("one", 9093)


def test_of_two_addresses_with_one_name_a_client_is_told_the_one_that_it_has() -> None:
    both = broker("10.0.0.5:9092", "192.0.2.7:9092")
    assert ClientSide("PLAINTEXT", "192.0.2.7").address_of(both) == ("192.0.2.7", 9092)
    assert ClientSide("PLAINTEXT", "10.0.0.5").address_of(both) == ("10.0.0.5", 9092)
    assert ClientSide("PLAINTEXT", "127.0.0.1").address_of(both) == ("10.0.0.5", 9092)


@pytest.mark.parametrize("machine_name", ["one", None])
def test_what_is_advertised_is_registered_instead_of_where_it_listens(
    machine_name: str | None,
) -> None:
    listeners = parse_endpoints("PLAINTEXT://0.0.0.0:9092,INSIDE://10.0.0.1:9093")
    advertised = {"PLAINTEXT": Endpoint("PLAINTEXT", "one.example", 19092)}
    assert registered_endpoints(advertised, listeners, machine_name) == (
        EndpointInfo("PLAINTEXT", "one.example", 19092),
        EndpointInfo("INSIDE", "10.0.0.1", 9093),
    )
