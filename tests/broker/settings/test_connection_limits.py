"""The limits of connections follow the settings."""

import os
from pathlib import Path

import pytest

from headwater.base.settings import SettingError
from headwater.broker.settings import connection_limits
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.broker.settings.connection_limits import make_connection_limits
from headwater.broker.settings.rows.network import host_limits
from headwater.broker.settings.tables import BROKER_SETTINGS
from tests.support.fakes.peers.config_image import FakeConfigImage


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
                "socket.request.progress.timeout.ms": "2500",
                "socket.answer.progress.timeout.ms": "-1",
            }
        )
    )
    assert (limits.request_size_max, limits.queued_bytes_max) == (1000, 2000)
    assert (limits.connections_max, limits.connections_max_per_ip) == (30, 20)
    assert (limits.idle_max_s, limits.requests_in_flight_max) == (1.5, 4)
    assert (limits.receive_progress_s, limits.send_progress_s) == (2.5, -0.001)
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


def test_without_a_bound_requests_still_leave_half_of_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    container = tmp_path / "memory.max"
    absent = tmp_path / "absent"
    monkeypatch.setattr(connection_limits, "_CONTAINER_LIMITS", (container, absent))
    for text, expected in (
        ("max", machine_bytes // 2),
        (str(2**63 - 4096), machine_bytes // 2),
        ("1000000\n", 500_000),
    ):
        container.write_text(text)
        limits = make_connection_limits(BrokerSettings.from_texts({}))
        assert limits.queued_bytes_max == expected
