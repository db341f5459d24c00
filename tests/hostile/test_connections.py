"""Connections that take and do not give: claims, silence, answers that nobody reads."""

import contextlib
import time
from pathlib import Path

import pytest

from headwater.testing.broker_process import wait_until
from headwater.wire.api_keys import ApiKey
from headwater.wire.frames import encode_request
from headwater.wire.messages.api_versions import ApiVersionsRequest
from headwater.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from headwater.wire.messages.fetch import FetchRequest
from headwater.wire.messages.metadata import MetadataRequest
from headwater.wire.records import Record, encode_batch
from headwater.wire.schema import Message
from tests.support.brokers.hostile_broker import (
    FETCH_VERSION,
    MEBIBYTE,
    METADATA_VERSION,
    PRODUCE_VERSION,
    AttackedBroker,
    attacked_broker,
    claim,
)
from tests.support.other_clients.raw import RawConnection, fetch_topic, produce_request

CLAIM_BYTES = 100 * MEBIBYTE


def test_claims_of_large_requests_hold_up_nobody(tmp_path: Path) -> None:
    """A length is only a claim: neither memory nor the budget is charged with it."""
    settings = {"queued.max.request.bytes": str(256 * MEBIBYTE)}
    with attacked_broker(tmp_path, settings=settings) as broker:
        claims = broker.open_sockets(140)
        for each in claims:
            each.sendall(claim(CLAIM_BYTES))
        broker.wait_rounds(20)
        for each in claims:
            each.sendall(bytes(64 * 1024))
        broker.wait_rounds(20)
        broker.close_sockets()
        wait_until(broker.settled, "all is given back")


def test_large_requests_that_stop_half_way_make_room_for_others(tmp_path: Path) -> None:
    """What they sent is in memory, up to the bound; then those that send no more are ended."""
    settings = {"queued.max.request.bytes": str(32 * MEBIBYTE)}
    with attacked_broker(tmp_path, settings=settings) as broker:
        attackers = broker.open_sockets(60)
        for each in attackers:
            each.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                each.send(claim(CLAIM_BYTES) + bytes(3 * MEBIBYTE))
        broker.wait_rounds(50)
        wait_until(
            lambda: "others wait for the memory" in broker.output.read_text(),
            "the slowest are ended for the others",
        )
        broker.close_sockets()
        wait_until(broker.settled, "all is given back")


def test_requests_that_come_in_drops_end(tmp_path: Path) -> None:
    with attacked_broker(
        tmp_path, settings={"socket.request.progress.timeout.ms": "1000"}
    ) as broker:
        attackers = broker.open_sockets(50)
        for each in attackers:
            each.sendall(claim(1000))

        def drip_until_all_are_closed() -> bool:
            for each in attackers:
                with contextlib.suppress(ConnectionError):
                    each.sendall(b"x")
            return broker.settled()

        wait_until(drip_until_all_are_closed, "those who drip are gone")


def test_the_metrics_can_be_read_whoever_else_is_connected(tmp_path: Path) -> None:
    with attacked_broker(tmp_path) as broker:
        for beginning in (b"", b"GET /metrics HTTP/1.1\r\nX: ", b"GET /metrics HTTP/1.1\r\n\r\n"):
            for each in broker.open_sockets(100, port=broker.metrics_port):
                each.sendall(beginning)
            assert "headwater_connections" in broker.metrics_page()
        broker.close_sockets()
        wait_until(broker.settled, "all is given back")


@pytest.mark.parametrize(
    ("message", "version", "count"),
    [
        pytest.param(MetadataRequest(topics=None), METADATA_VERSION, 100, id="metadata"),
        pytest.param(
            FetchRequest(topics=[fetch_topic("large", 0)]), FETCH_VERSION, 200, id="fetch"
        ),
        # Small answers take long to fill the buffers of a connection.
        pytest.param(ApiVersionsRequest(), 3, 20, id="versions", marks=pytest.mark.full),
    ],
)
def test_those_who_ask_and_never_read_slow_nobody_down(
    tmp_path: Path, message: Message, version: int, count: int
) -> None:
    """Each costs the broker a few answers; then it is not read from, and at last it is ended."""
    settings = {"socket.answer.progress.timeout.ms": "2000", "acks.all.flush": "off"}
    with attacked_broker(tmp_path, settings=settings) as broker:
        make_topics(broker)
        questions = request_bytes(message, version) * 1000
        attackers = broker.open_sockets(count, buffer_bytes=32 * 1024)

        def ask_until_all_are_ended() -> bool:
            for each in attackers:
                each.setblocking(False)
                with contextlib.suppress(OSError):
                    each.send(questions)
            return broker.settled()

        wait_until(ask_until_all_are_ended, "those who do not read are gone")
        broker.wait_rounds(20)
        wait_until(
            lambda: "it has not read its answers" in broker.output.read_text(),
            "the log tells of it",
        )


def make_topics(broker: AttackedBroker) -> None:
    """One with many partitions, and one with large records."""
    topics = [
        CreatableTopic(name="wide", num_partitions=30, replication_factor=1),
        CreatableTopic(name="large", num_partitions=1, replication_factor=1),
    ]
    with RawConnection(broker.bootstrap) as connection:
        connection.ask(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 5)
        batch = encode_batch([Record(0, int(time.time() * 1000), None, bytes(900_000))])
        for _ in range(10):
            connection.ask(produce_request("large", batch), PRODUCE_VERSION)


def request_bytes(message: Message, version: int) -> bytes:
    parts = encode_request(ApiKey(message.API_KEY), version, 1, "hostile", message)
    return b"".join(bytes(part) for part in parts)  # type: ignore[arg-type]
