"""The limits of connections follow the settings."""

import os

import pytest

from headwater.base.settings import SettingError
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.broker.settings.connection_limits import make_connection_limits
from headwater.broker.settings.network_settings import host_limits
from headwater.broker.settings.tables import BROKER_SETTINGS
from tests.support.config_image import FakeConfigImage


def test_limits_are_those_of_the_settings() -> None:
    limits = make_connection_limits(
        BrokerSettings.from_texts(
            {
                "socket.request.max.bytes": "1000",
                "queued.max.request.bytes": "2000",
                "max.connections": "30",
                "max.connections.per.ip": "20",
                "max.connections.per.ip.overrides": "10.0.0.1:3",
                "connections.max.idle.ms": "1500",
                "max.requests.in.flight.per.connection": "4",
            }
        )
    )
    assert (limits.request_size_max, limits.queued_bytes_max) == (1000, 2000)
    assert (limits.connections_max, limits.connections_max_per_ip) == (30, 20)
    assert (limits.idle_max_s, limits.requests_in_flight_max) == (1.5, 4)
    assert limits.connections_max_by_host == {"10.0.0.1": 3}


def test_dynamic_ones_follow_at_run_time() -> None:
    settings = BrokerSettings.from_texts({"broker.id": "0"})
    limits = make_connection_limits(settings)
    configs = {
        "max.connections": "5",
        "max.connections.per.ip": "4",
        "max.connections.per.ip.overrides": "::1:2",
        "max.requests.in.flight.per.connection": "9",
    }
    settings.take_image(FakeConfigImage(brokers={None: configs}))
    assert (limits.connections_max, limits.connections_max_per_ip) == (5, 4)
    assert (limits.connections_max_by_host, limits.requests_in_flight_max) == ({"::1": 2}, 9)
    settings.take_image(FakeConfigImage())
    assert limits.connections_max == 2**31 - 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("10.0.0.1:3, host.example:0,", {"10.0.0.1": 3, "host.example": 0}),
        ("[::1]:7", {"::1": 7}),
    ],
)
def test_overrides_by_address(text: str, expected: dict[str, int]) -> None:
    values = BROKER_SETTINGS.parse({"max.connections.per.ip.overrides": text})
    assert host_limits(values) == expected


@pytest.mark.parametrize("text", ["10.0.0.1", "10.0.0.1:x", ":3", "10.0.0.1:-1", "10.0.0.1:²"])
def test_overrides_that_make_no_sense(text: str) -> None:
    with pytest.raises(SettingError, match="host:count"):
        host_limits(BROKER_SETTINGS.parse({"max.connections.per.ip.overrides": text}))


def test_without_a_bound_requests_still_leave_the_machine_half_of_its_memory() -> None:
    limits = make_connection_limits(BrokerSettings.from_texts({}))
    page_bytes, pages = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_PHYS_PAGES")
    assert limits.queued_bytes_max == page_bytes * pages // 2
