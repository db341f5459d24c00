import pytest

from headwater.base.settings import SettingError, SettingValues
from headwater.client.settings.client_config import parse_settings
from headwater.client.settings.producer_settings import (
    PRODUCER_SETTINGS,
    acks_of,
    check_producer_settings,
    compression_of,
    delivery_timeout_ms,
    is_idempotent,
)
from headwater.wire.records import Compression

#: As Kafka 4.1 has them.
KAFKAS_DEFAULTS: dict[str, object] = {
    "acks": "all",
    "enable.idempotence": True,
    "batch.size": 16384,
    "linger.ms": 5,
    "buffer.memory": 33554432,
    "max.block.ms": 60000,
    "max.request.size": 1048576,
    "compression.type": "none",
    "retries": 2147483647,
    "delivery.timeout.ms": 120000,
    "request.timeout.ms": 30000,
    "max.in.flight.requests.per.connection": 5,
    "retry.backoff.ms": 100,
    "retry.backoff.max.ms": 1000,
    "metadata.max.age.ms": 300000,
    "transaction.timeout.ms": 60000,
    "transactional.id": None,
    "partitioner.ignore.keys": False,
    "partitioner.adaptive.partitioning.enable": True,
}


def settings(**keywords: object) -> SettingValues:
    values = parse_settings(PRODUCER_SETTINGS, None, keywords)
    check_producer_settings(values)
    return values


@pytest.mark.parametrize(("name", "default"), KAFKAS_DEFAULTS.items())
def test_the_defaults_are_kafkas(name: str, default: object) -> None:
    assert PRODUCER_SETTINGS[name].default == default


@pytest.mark.parametrize(
    ("given", "expected"), [("all", -1), (-1, -1), ("-1", -1), (1, 1), ("0", 0), (0, 0)]
)
def test_acks(given: object, expected: int) -> None:
    assert acks_of(settings(acks=given)) == expected


def test_acks_2_is_refused() -> None:
    with pytest.raises(SettingError, match="acks"):
        settings(acks=2)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, True),
        ({"enable_idempotence": False}, False),
        ({"acks": 1}, False),
        ({"retries": 0}, False),
        ({"max_in_flight_requests_per_connection": 6}, False),
        ({"transactional_id": "mine"}, True),
    ],
)
def test_idempotence_is_on_unless_something_speaks_against_it(
    given: dict[str, object], expected: bool
) -> None:
    assert is_idempotent(settings(**given)) is expected


@pytest.mark.parametrize(
    ("contradiction", "named"),
    [
        ({"acks": 1}, "acks=all"),
        ({"acks": 0}, "acks=all"),
        ({"retries": 0}, "retries"),
        ({"max_in_flight_requests_per_connection": 6}, "max.in.flight"),
    ],
)
@pytest.mark.parametrize("wish", [{"enable_idempotence": True}, {"transactional_id": "mine"}])
def test_a_contradiction_to_a_wish_is_refused(
    contradiction: dict[str, object], named: str, wish: dict[str, object]
) -> None:
    with pytest.raises(SettingError, match=named):
        settings(**contradiction, **wish)


def test_transactions_need_idempotence_and_a_name() -> None:
    with pytest.raises(SettingError, match=r"enable.idempotence"):
        settings(transactional_id="mine", enable_idempotence=False)
    with pytest.raises(SettingError, match="empty"):
        settings(transactional_id="")


def test_delivery_takes_at_least_as_long_as_an_attempt() -> None:
    with pytest.raises(SettingError, match=r"linger.ms"):
        settings(delivery_timeout_ms=1000)
    assert delivery_timeout_ms(settings(request_timeout_ms=200_000)) == 200_005
    assert delivery_timeout_ms(settings()) == 120_000


def test_compression() -> None:
    assert compression_of(settings()) == (Compression.NONE, None)
    assert compression_of(settings(compression_type="zstd")) == (Compression.ZSTD, None)
    leveled = settings(compression_type="gzip", compression_gzip_level=3)
    assert compression_of(leveled) == (Compression.GZIP, 3)
    with pytest.raises(SettingError, match="snappy"):
        settings(compression_type="brotli")


def test_a_wrong_name_is_answered_with_the_right_one() -> None:
    with pytest.raises(SettingError, match="linger_ms"):
        settings(lingr_ms=5)
