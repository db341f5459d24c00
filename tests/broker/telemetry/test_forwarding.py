"""Passing pushes on by OTLP over HTTP, to a receiver built on the official classes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)

from headwater.base.settings import SettingError
from headwater.broker.settings.static_settings import static_of
from headwater.broker.telemetry.forwarding import OtlpForwarder
from headwater.testing.broker_process import free_port
from headwater.wire.records.compression import Compression, compress
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker
from tests.support.brokers.telemetry_asking import ask, push, subscribe
from tests.support.values.pushed_metrics import gauge, pushed
from tests.support.waiting import eventually

PATH = "/v1/metrics?tenant=a"


class Receiver:
    """What a collector would be told."""

    def __init__(self) -> None:
        self.status = 200
        self.requests: list[ExportMetricsServiceRequest] = []
        self.paths: list[str] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.headers["Content-Type"] == "application/x-protobuf"
                receiver.requests.append(ExportMetricsServiceRequest.FromString(body))
                receiver.paths.append(self.path)
                answer = ExportMetricsServiceResponse().SerializeToString()
                self.send_response(receiver.status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}{PATH}"


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()
    thread = threading.Thread(target=receiver.server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield receiver
    finally:
        receiver.server.shutdown()
        thread.join()
        receiver.server.server_close()


@contextmanager
def forwarder_to(url: str, waiting_bytes_max: int = 1 << 20) -> Iterator[OtlpForwarder]:
    forwarder = OtlpForwarder(url, waiting_bytes_max=waiting_bytes_max)
    try:
        yield forwarder
    finally:
        forwarder.close()


def test_what_clients_push_arrives_with_what_is_known_of_them(tmp_path: Path) -> None:
    data = pushed([gauge("a.b", 1.5)], group_id="g", client_id="its own")

    async def scenario(broker: HandlerBroker) -> None:
        await subscribe(broker)
        told = await ask(broker)
        packed = compress(Compression.ZSTD, data)
        assert await push(broker, told, packed, Compression.ZSTD) == 0
        await broker.context.run_in_thread(lambda: eventually(lambda: len(receiver.requests) == 1))
        assert receiver.paths == [PATH]
        [resource_metrics] = receiver.requests[0].resource_metrics
        attributes = [
            (each.key, each.value.string_value) for each in resource_metrics.resource.attributes
        ]
        assert len({key for key, _ in attributes}) == len(attributes)
        known = dict(attributes)
        assert len(known.pop("client_instance_id")) == 22
        assert known == {
            "group_id": "g",
            "client_id": "its own",
            "client_software_name": "unknown",
            "client_software_version": "unknown",
            "client_source_address": "192.0.2.9",
            "client_source_port": "40000",
            "broker_id": "0",
        }
        [metric] = resource_metrics.scope_metrics[0].metrics
        assert (metric.name, metric.gauge.data_points[0].as_double) == ("a.b", 1.5)
        # There is no page, so nothing is kept for one.
        assert broker.context.telemetry is not None and len(broker.context.telemetry.series) == 0

    with receiving() as receiver:
        run_with_broker(tmp_path, scenario, {"telemetry.otlp.endpoint": receiver.url})


def test_a_receiver_that_comes_and_goes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    with receiving() as receiver, forwarder_to(receiver.url) as forwarder:
        receiver.status = 503
        for _ in range(2):
            forwarder.offer(pushed([gauge("a", 1)]))
        eventually(lambda: forwarder.failed_count == 2)
        receiver.status = 200
        for _ in range(2):
            forwarder.offer(pushed([gauge("a", 1)]))
        eventually(lambda: forwarder.sent_count == 2)
    assert [record.getMessage().split(receiver.url)[1] for record in caplog.records] == [
        ": it answers 503 Service Unavailable",
        " again.",
    ]


def test_nobody_is_there_and_what_waits_is_bounded() -> None:
    with forwarder_to(f"http://127.0.0.1:{free_port()}/", waiting_bytes_max=100) as forwarder:
        forwarder.offer(b"x")
        eventually(lambda: forwarder.failed_count == 1)
        forwarder.offer(bytes(101))
        assert forwarder.dropped_count == 1


@pytest.mark.parametrize(
    "url",
    ["localhost:4318", "ftp://a/b", "http://", "http://a:0/", "http://a:x/", "http://u@a/"],
)
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(SettingError, match=r"telemetry\.otlp\.endpoint"):
        static_of({"broker.id": "0", "telemetry.otlp.endpoint": url})
