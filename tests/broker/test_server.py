"""A broker's life: start, restart, stop, and what keeps it from starting."""

import asyncio
import logging
import os
import socket
import struct
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.base.settings import SettingError
from headwater.broker.server import BrokerServer
from headwater.broker.settings.static_settings import static_of
from headwater.broker.start.faults import StartError
from headwater.net.peer_channel import PeerChannel, PeerUnavailableError
from headwater.wire.messages.init_producer_id import InitProducerIdRequest
from headwater.wire.messages.metadata import MetadataRequest
from tests.support.brokers.running_broker import (
    FETCH_VERSION,
    RunningBroker,
    broker_settings,
    fetch_request,
    run_broker_scenario,
)


def _server(directory: Path, **settings: str) -> BrokerServer:
    texts = {name.replace("_", "."): value for name, value in settings.items()}
    return BrokerServer(static_of(broker_settings(directory, texts)))


def test_topics_records_and_identity_outlive_a_restart(tmp_path: Path) -> None:
    seen: list[tuple[str, object]] = []

    async def before(broker: RunningBroker) -> None:
        await broker.create_topic("orders", partitions=2, configs={"retention.ms": "12345"})
        await broker.produce("orders", [b"a"], acks=-1)
        context = broker.server.context
        seen.append((context.cluster_id, context.image.topics["orders"]))

    async def after(broker: RunningBroker) -> None:
        context = broker.server.context
        assert (context.cluster_id, context.image.topics["orders"]) == seen[0]
        assert await broker.values("orders") == [b"a"]
        assert context.partitions.get("orders", 1).log.config.retention_ms == 12345

    run_broker_scenario(tmp_path, before)
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    run_broker_scenario(tmp_path, after)


def test_a_deleted_topic_does_not_come_back(tmp_path: Path) -> None:
    async def before(broker: RunningBroker) -> None:
        await broker.create_topic("orders")
        await broker.produce("orders", [b"old"])
        await broker.server.context.controller.delete_topics(["orders"])
        await broker.create_topic("orders")

    async def after(broker: RunningBroker) -> None:
        assert await broker.values("orders") == []

    run_broker_scenario(tmp_path, before)
    run_broker_scenario(tmp_path, after)


def test_an_occupied_port_is_told_and_nothing_is_left_behind(tmp_path: Path) -> None:
    async def run() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(OSError, match=f"127.0.0.1:{port}.*in use"):
                await _server(tmp_path, listeners=f"PLAINTEXT://127.0.0.1:{port}").start()
        server = _server(tmp_path, listeners=f"PLAINTEXT://127.0.0.1:{port}")
        await server.start()
        await server.stop()

    asyncio.run(run())


def test_a_directory_in_use_is_told(tmp_path: Path) -> None:
    async def run() -> None:
        server = _server(tmp_path)
        await server.start()
        try:
            with pytest.raises(StartError, match=str(tmp_path)):
                await _server(tmp_path).start()
        finally:
            await server.stop()

    asyncio.run(run())


def test_a_directory_of_another_broker_is_told(tmp_path: Path) -> None:
    async def run() -> None:
        server = _server(tmp_path, **{"broker.id": "1"})
        await server.start()
        await server.stop()
        with pytest.raises(StartError, match="broker 1"):
            await _server(tmp_path, **{"broker.id": "2"}).start()

    asyncio.run(run())


def test_a_path_that_cannot_be_a_directory_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    async def run() -> None:
        with pytest.raises(StartError, match="file"):
            await _server(tmp_path / "file").start()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"listeners": "PLAINTEXT://127.0.0.1:port"}, "port"),
        ({"advertised.listeners": "OTHER://host:1"}, "OTHER"),
        ({"create.topic.policy.class.name": "no.such:Policy"}, "no.such"),
    ],
)
def test_settings_that_make_no_sense_are_told(
    tmp_path: Path, settings: dict[str, str], words: str
) -> None:
    async def run() -> None:
        with pytest.raises(SettingError, match=words):
            await _server(tmp_path, **settings).start()

    asyncio.run(run())


def test_a_broker_without_an_id_makes_one_up_and_keeps_it(tmp_path: Path) -> None:
    async def run() -> None:
        for _ in range(2):
            server = _server(tmp_path, **{"broker.id": "-1", "reserved.broker.max.id": "2000"})
            await server.start()
            assert server.context.node_id == 2001
            await server.stop()

    asyncio.run(run())


def test_several_listeners_in_both_versions_of_ip(tmp_path: Path) -> None:
    async def run() -> None:
        listeners = "ONE://127.0.0.1:0,TWO://[::1]:0"
        protocols = "ONE:PLAINTEXT,TWO:PLAINTEXT"
        server = _server(
            tmp_path, listeners=listeners, **{"listener.security.protocol.map": protocols}
        )
        await server.start()
        try:
            for endpoint, host in zip(
                server.listeners.endpoints, ("127.0.0.1", "::1"), strict=True
            ):
                channel = await PeerChannel.connect(host, endpoint.port)
                metadata = await channel.send(MetadataRequest(topics=[]), timeout_s=10)
                # Each listener tells of itself.
                assert [(each.host, each.port) for each in metadata.brokers] == [
                    (host, endpoint.port)
                ]
                await channel.close()
        finally:
            await server.stop()

    asyncio.run(run())


def test_advertised_listeners_are_what_clients_are_told(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        metadata = await broker.send(MetadataRequest(topics=[]))
        assert [(each.host, each.port) for each in metadata.brokers] == [("example.org", 19092)]

    run_broker_scenario(
        tmp_path, scenario, {"advertised.listeners": "PLAINTEXT://example.org:19092"}
    )


def test_stopping_answers_what_waits(tmp_path: Path) -> None:
    async def run() -> None:
        server = _server(tmp_path)
        await server.start()
        endpoint = server.listeners.endpoints[0]
        channel = await PeerChannel.connect(endpoint.host, endpoint.port)
        broker = RunningBroker(server, channel)
        await broker.create_topic("orders")
        pending = channel.send_nowait(
            fetch_request({("orders", 0): 0}, min_bytes=1, max_wait_ms=600_000),
            version=FETCH_VERSION,
        )
        while len(server.context.parked.fetch) == 0:
            await asyncio.sleep(0)
        await server.stop()
        assert (await pending).responses[0].partitions[0].error_code == 0
        with pytest.raises(PeerUnavailableError):
            await channel.send(MetadataRequest(topics=[]), timeout_s=10)
        await channel.close()

    asyncio.run(run())


def _frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"x",
        struct.pack(">hhih", 999, 0, 1, -1),
        struct.pack(">hhih", 3, 99, 1, -1),
        struct.pack(">hhih", 0, 2, 1, -1) + bytes(20),
        struct.pack(">hhih", 3, 1, 1, -1) + b"\x7f\xff\xff\xff",
        struct.pack(">hhih", 0, 3, 1, -1) + b"\xff\xff\x00\x01",
        struct.pack(">hhih", 1, 4, 1, 30_000),
    ],
)
def test_nonsense_costs_its_connection_one_line_and_nobody_else_anything(
    tmp_path: Path, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(broker: RunningBroker) -> None:
        endpoint = broker.server.listeners.endpoints[0]
        reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
        writer.write(_frame(body))
        async with asyncio.timeout(10):
            assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()
        assert (await broker.send(MetadataRequest(topics=[]))).cluster_id

    with caplog.at_level(logging.WARNING):
        run_broker_scenario(tmp_path, scenario)
    assert len(caplog.records) == 1
    assert "disconnected" in caplog.text


def test_api_versions_is_answered_in_any_version(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        endpoint = broker.server.listeners.endpoints[0]
        reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
        writer.write(_frame(struct.pack(">hhih", 18, 99, 7, -1) + b"\0\1\2\3"))
        async with asyncio.timeout(10):
            (size,) = struct.unpack(">i", await reader.readexactly(4))
            answer = await reader.readexactly(size)
        correlation_id, error_code, count = struct.unpack_from(">ihi", answer)
        assert (correlation_id, error_code, count) == (7, ErrorCode.UNSUPPORTED_VERSION, 1)
        assert struct.unpack_from(">hhh", answer, 10) == (18, 0, 5)
        writer.close()
        await writer.wait_closed()

    run_broker_scenario(tmp_path, scenario)


def test_a_handler_that_fails_is_answered_with_an_error_and_the_broker_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(broker: RunningBroker) -> None:
        def fail() -> None:
            raise ZeroDivisionError("a bug")

        monkeypatch.setattr(broker.server.context.producer_ids, "next_id", fail)
        response = await broker.send(InitProducerIdRequest(transactional_id=None))
        assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert (await broker.send(MetadataRequest(topics=[]))).cluster_id

    run_broker_scenario(tmp_path, scenario)
    assert "a bug" in caplog.text


def test_when_no_directory_is_left_the_broker_says_that_it_cannot_go_on(tmp_path: Path) -> None:
    async def run() -> None:
        server = _server(tmp_path, **{"log.initial.task.delay.ms": "0"})
        await server.start()
        endpoint = server.listeners.endpoints[0]
        channel = await PeerChannel.connect(endpoint.host, endpoint.port)
        broker = RunningBroker(server, channel)
        await broker.create_topic("orders")
        directory = server.context.directories.directories[0]
        directory.fail(OSError(5, os.strerror(5)))
        answer = await broker.produce("orders", [b"x"])
        assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        async with asyncio.timeout(20):
            reason = await server.wait_failed()
        assert str(tmp_path) in str(reason)
        await channel.close()
        await server.stop()

    asyncio.run(run())
