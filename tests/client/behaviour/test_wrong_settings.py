"""Settings that are refused, and addresses where nobody is, as a user meets them."""

from __future__ import annotations

import time

import pytest

from headwater import Admin, Consumer, KafkaError, Producer
from headwater.base.errors import ErrorCode

NOBODY = "127.0.0.1:1"


@pytest.mark.parametrize(
    ("client", "wrong", "right"),
    [
        (Producer, "linger_sm", "linger.ms"),
        (Producer, "batch.sise", "batch.size"),
        (Consumer, "group.idd", "group.id"),
        (Consumer, "auto_ofset_reset", "auto.offset.reset"),
        (Admin, "bootstrap.server", "bootstrap.servers"),
    ],
)
def test_a_misspelt_setting_is_refused_with_the_right_one(
    client: type[Producer] | type[Consumer] | type[Admin], wrong: str, right: str
) -> None:
    with pytest.raises(KafkaError, match=right.replace(".", r"\.")):
        client({wrong: 1, "bootstrap.servers": NOBODY})


@pytest.mark.parametrize(
    "settings",
    [
        {"enable.idempotence": True, "acks": "1"},
        {"enable.idempotence": True, "retries": 0},
        {"enable.idempotence": True, "max.in.flight.requests.per.connection": 6},
        {"enable.idempotence": False, "transactional.id": "tx"},
        {"delivery.timeout.ms": 1_000, "request.timeout.ms": 30_000},
        {"compression.type": "best"},
        {"acks": "2"},
        {"linger.ms": -1},
    ],
)
def test_settings_that_contradict_each_other(settings: dict[str, object]) -> None:
    with pytest.raises(KafkaError) as refused:
        Producer({"bootstrap.servers": NOBODY, **settings})
    assert refused.value.code == ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    "settings",
    [
        {"heartbeat.interval.ms": 3_000, "session.timeout.ms": 8_000},
        {"auto.offset.reset": "first"},
        {"isolation.level": "read_some"},
        {"group.protocol": "streams"},
    ],
)
def test_a_consumers_settings_that_make_no_sense(settings: dict[str, object]) -> None:
    with pytest.raises(KafkaError) as refused:
        Consumer({"bootstrap.servers": NOBODY, "group.id": "group", **settings})
    assert refused.value.code == ErrorCode.INVALID_CONFIG


def test_nothing_is_sent_to_nobody() -> None:
    """An address where nobody is: the user hears it within the time that was set."""
    start_s = time.monotonic()
    with (
        pytest.raises(KafkaError),
        Producer(
            bootstrap_servers=NOBODY, max_block_ms=500, socket_connection_setup_timeout_ms=500
        ) as producer,
    ):
        producer.send("topic", b"x").result(5)
    with (
        pytest.raises(KafkaError),
        Admin(bootstrap_servers=NOBODY, default_api_timeout_ms=500) as admin,
    ):
        admin.list_topics()
    assert time.monotonic() - start_s < 20
