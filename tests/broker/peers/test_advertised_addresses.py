"""The addresses that clients are told, and settings that cannot be told."""

import pytest

from headwater.base.settings import SettingError
from headwater.broker.peers.advertised_addresses import Address, ClientSide, check_advertised
from headwater.cluster.image.image import BrokerInfo, EndpointInfo
from headwater.net.endpoint import parse_endpoints

OWN = BrokerInfo(0, (EndpointInfo("PLAINTEXT", "", 9092),))
OTHER = BrokerInfo(
    1, (EndpointInfo("PLAINTEXT", "10.0.0.2", 9092), EndpointInfo("OUTSIDE", "two.example", 443))
)


def client(listener_name: str, advertised: str | None = None) -> ClientSide:
    return ClientSide(0, advertised, listener_name, Address("192.0.2.7", 9092))


@pytest.mark.parametrize("advertised", [None, "", "OUTSIDE://one.example:443"])
def test_the_dialled_address_is_told_unless_another_one_is_set(advertised: str | None) -> None:
    assert client("PLAINTEXT", advertised).address_of(OWN) == ("192.0.2.7", 9092)


def test_each_listener_has_an_advertised_address_of_its_own() -> None:
    advertised = "PLAINTEXT://in.example:1, OUTSIDE://[2001:db8::1]:443"
    assert client("PLAINTEXT", advertised).address_of(OWN) == ("in.example", 1)
    assert client("OUTSIDE", advertised).address_of(OWN) == ("2001:db8::1", 443)


def test_of_other_brokers_a_client_is_told_what_they_registered_for_its_listener() -> None:
    assert client("OUTSIDE", "OUTSIDE://one.example:443").address_of(OTHER) == ("two.example", 443)
    assert client("PLAINTEXT").address_of(OTHER) == ("10.0.0.2", 9092)
    assert client("ELSEWHERE").address_of(OTHER) is None


@pytest.mark.parametrize(
    ("advertised", "reason"),
    [
        ("OUTSIDE://one.example:443", "names OUTSIDE, but the listeners are PLAINTEXT"),
        ("PLAINTEXT://0.0.0.0:9092", "cannot tell clients to dial '0.0.0.0'"),
        ("PLAINTEXT://[::]:9092", "cannot tell clients to dial '::'"),
        ("PLAINTEXT://:9092", "cannot tell clients to dial 'no host'"),
        ("PLAINTEXT://one.example:0", "tells no port for PLAINTEXT"),
        ("one.example", "advertised.listeners"),
        ("a.example:1,b.example:2", "names PLAINTEXT twice"),
    ],
)
def test_addresses_that_no_client_can_dial_are_refused(advertised: str, reason: str) -> None:
    with pytest.raises(SettingError, match=reason):
        check_advertised(advertised, parse_endpoints("PLAINTEXT://0.0.0.0:9092"))


@pytest.mark.parametrize("advertised", [None, "", "PLAINTEXT://one.example:9092"])
def test_addresses_that_clients_can_dial_are_accepted(advertised: str | None) -> None:
    check_advertised(advertised, parse_endpoints("PLAINTEXT://0.0.0.0:9092"))
    assert client("PLAINTEXT", advertised).address_of(OWN) is not None
