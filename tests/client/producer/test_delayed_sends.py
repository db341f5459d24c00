"""`send` with a delay, of both producers, on a broker."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater import Admin, AsyncProducer, Consumer, NewTopic, Producer, TopicPartition
from headwater.base.settings import SettingError
from headwater.client.producer.delayed_records import DelayedRecords, DelayWay
from headwater.client.producer.errors import NoDelaysError
from headwater.testing import broker
from tests.support.async_tests import run_async

HEADERS = (("headwater-delay", b"0"), ("headwater-delay-id", b"mine"))


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with broker() as running:
        running.create_topic("orders")
        yield running.bootstrap


@pytest.fixture
def header_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    """The topics say that headers count; they do not, so that a consumer sees them as sent."""

    async def find_way(*_: object) -> DelayWay:
        return DelayWay.HEADER

    monkeypatch.setattr(DelayedRecords, "_find_way", find_way)


def read_back(bootstrap: str, offset: int) -> Any:
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition("orders", 0)])
        while True:
            for record in consumer.poll(timeout_s=10):
                if record.offset == offset:
                    return record


def test_a_topic_without_delays_refuses(bootstrap: str) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        with pytest.raises(NoDelaysError, match="'orders' cannot be given a delay"):
            producer.send("orders", b"v", delay="30s")
        # Others go as ever.
        assert producer.send("orders", b"v").result().topic == "orders"
        with pytest.raises(ValueError, match="not both"):
            producer.send("orders", b"v", delay="30s", deliver_at=5)
        with pytest.raises(TypeError, match="name of a topic"):
            producer.send(7, b"v", delay="30s")  # type: ignore[arg-type]


@pytest.mark.usefixtures("header_mode")
def test_headers_are_sent(bootstrap: str) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        sent = [
            producer.send("orders", b"v", b"k", headers={"a": "b"}, delay=0, delay_id="mine")
            for _ in range(2)
        ]
        written = sent[-1].result()
    record = read_back(bootstrap, written.offset)
    assert (record.key, record.value, record.headers) == (b"k", b"v", (("a", b"b"), *HEADERS))
    assert str(written.message_id) == f"orders-0@{written.offset}"


@pytest.mark.usefixtures("header_mode")
@run_async
async def test_headers_are_sent_from_a_loop(bootstrap: str) -> None:
    async with AsyncProducer(bootstrap_servers=bootstrap) as producer:
        written = await producer.send_and_wait("orders", b"v", delay=0, delay_id=b"mine")
        again = await (await producer.send("orders", b"v", deliver_at=0, expire_at=2))
    assert read_back(bootstrap, written.offset).headers == HEADERS
    assert read_back(bootstrap, again.offset).headers == (
        ("headwater-deliver-at", b"0"),
        ("headwater-expire-at", b"2"),
    )


def test_a_cluster_that_does_not_delay_gets_level_topics(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def find_way(*_: object) -> DelayWay:
        return DelayWay.LEVEL_TOPIC

    monkeypatch.setattr(DelayedRecords, "_find_way", find_way)
    with (
        Producer(bootstrap_servers=bootstrap) as producer,
        Admin(bootstrap_servers=bootstrap) as admin,
    ):
        with pytest.raises(NoDelaysError, match="no topic '__delay_30s'"):
            producer.send("orders", b"v", delay="17s")
        # Looking for it has not made it.
        assert "__delay_30s" not in [topic.name for topic in admin.list_topics()]
        admin.create_topics([NewTopic("__delay_30s")])
        written = producer.send("orders", b"v", delay="17s").result()
        assert written.topic == "__delay_30s"


def test_a_spool_has_no_delays(bootstrap: str, tmp_path: Path) -> None:
    with (
        Producer(bootstrap_servers=bootstrap, spool_dir=tmp_path) as producer,
        pytest.raises(SettingError, match="no delays"),
    ):
        producer.send("orders", b"v", delay=1)
