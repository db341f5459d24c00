"""Where a broker listens, what it advertises, and addresses that no client can use."""

import pytest

from headwater.base.setting import SettingFaults
from headwater.base.settings import SettingError, SettingValues
from headwater.broker.settings.listener_settings import advertised_endpoints, client_endpoints
from headwater.broker.settings.static_settings import static_of
from headwater.broker.settings.tables import BROKER_SETTINGS
from headwater.net.endpoint import Endpoint

CONTROLLERS = {
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
}


def unchecked(**texts: str) -> SettingValues:
    return BROKER_SETTINGS.parse({name.replace("_", "."): text for name, text in texts.items()})


def test_a_named_listener_gets_its_protocol_from_the_map() -> None:
    texts = {
        "listeners": "inside://10.0.0.1:9092,OUTSIDE://[::1]:9093",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT, outside:plaintext",
    }
    assert client_endpoints(static_of(texts)) == [
        Endpoint("INSIDE", "10.0.0.1", 9092),
        Endpoint("OUTSIDE", "::1", 9093),
    ]


def test_listeners_of_controllers_are_left_out_wherever_they_are_named() -> None:
    advertised = "PLAINTEXT://one.example:9092,controller://one.example:9093"
    values = static_of({**CONTROLLERS, "advertised.listeners": advertised})
    assert client_endpoints(values) == [Endpoint("PLAINTEXT", "", 9092)]
    assert advertised_endpoints(values) == {"PLAINTEXT": Endpoint("PLAINTEXT", "one.example", 9092)}


def test_each_listener_has_an_advertised_address_of_its_own() -> None:
    values = static_of(
        {
            "listeners": "INSIDE://10.0.0.1:9092,OUTSIDE://10.0.0.1:9093",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
            "advertised.listeners": "INSIDE://in.example:1, OUTSIDE://[2001:db8::1]:443",
        }
    )
    assert advertised_endpoints(values) == {
        "INSIDE": Endpoint("INSIDE", "in.example", 1),
        "OUTSIDE": Endpoint("OUTSIDE", "2001:db8::1", 443),
    }


@pytest.mark.parametrize("advertised", ["", " "])
def test_nothing_may_be_advertised(advertised: str) -> None:
    assert advertised_endpoints(static_of({"advertised.listeners": advertised})) == {}


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
        advertised_endpoints(unchecked(listeners="0.0.0.0:9092", advertised_listeners=advertised))


def test_all_that_is_wrong_with_listeners_is_told() -> None:
    with pytest.raises(SettingFaults) as raised:
        client_endpoints(unchecked(listeners="SSL://:1,INSIDE://:2,PLAINTEXT://:3"))
    assert [sentence.split(",")[0] for sentence in raised.value.sentences] == [
        "The listener SSL is to speak SSL",
        "The setting listeners names INSIDE",
    ]


def test_listeners_of_a_broker_in_a_cluster_have_a_name_each() -> None:
    texts = {"listeners": "10.0.0.1:9092,127.0.0.1:9092"}
    assert len(client_endpoints(static_of(texts))) == 2
    with pytest.raises(SettingError, match="has PLAINTEXT twice"):
        static_of({**texts, "zookeeper.connect": "zoo:2181"})
