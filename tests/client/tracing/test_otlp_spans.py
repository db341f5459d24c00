"""Spans arrive at a receiver built on OpenTelemetry's own protobufs, as its conventions say."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from headwater.base.extras import MissingPackageError
from headwater.base.settings import SettingError
from headwater.client.consumer.consumer import Consumer
from headwater.client.producer.producer import Producer
from headwater.client.tracing import otlp_spans
from headwater.client.tracing.trace_context import sampled_context_of
from headwater.testing.running_broker import RunningBroker

Value = str | int


class Receiver:
    """Takes what an exporter sends, and answers as a collector does."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert self.path == "/v1/traces"
                body = self.rfile.read(int(self.headers["content-length"]))
                request = ExportTraceServiceRequest.FromString(body)
                for resource in request.resource_spans:
                    for scope in resource.scope_spans:
                        assert scope.scope.name == "headwater"
                        receiver.spans += scope.spans
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def span(self, name: str) -> Span:
        (found,) = [span for span in self.spans if span.name == name]
        return found


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = {"trace.sample": "1.0"}
    with RunningBroker(tmp_path_factory.mktemp("broker"), settings=settings) as broker:
        yield broker.bootstrap


def attributes(span: Span) -> dict[str, Value]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


def send_and_handle(bootstrap: str, topic: str, config: dict[str, object]) -> tuple[str, str]:
    """Of one record, which a handler could not handle; its trace id and the span that sent it."""
    with Producer({**config, "client.id": "shop"}) as producer:
        producer.send(topic, b"value").result(30)
    settings = {"group.id": "billing", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    with Consumer({**config, **settings}) as consumer:
        consumer.subscribe([topic])
        while not (records := consumer.poll(5.0)):
            pass
        (record,) = records
        with pytest.raises(ValueError, match="no"), consumer.handling(record):
            raise ValueError("no")
        consumer.commit()
    context = sampled_context_of(record.headers)
    assert context is not None
    return context.trace_id, context.span_id


def test_spans_are_as_the_conventions_say(bootstrap: str, receiver: Receiver) -> None:
    config = {
        "bootstrap.servers": bootstrap,
        "trace.enable": True,
        "trace.topic": "",
        "trace.otlp.endpoint": receiver.endpoint,
    }
    trace_id, span_id = send_and_handle(bootstrap, "orders", config)
    names = {"send orders", "poll orders", "process orders", "commit orders"}
    assert {span.name for span in receiver.spans} == names
    sent = receiver.span("send orders")
    assert (sent.trace_id.hex(), sent.span_id.hex()) == (trace_id, span_id)
    assert sent.kind == Span.SPAN_KIND_PRODUCER
    assert not sent.parent_span_id
    assert not sent.links
    assert attributes(sent) == {
        "messaging.system": "kafka",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "orders",
        "messaging.destination.partition.id": "0",
        "messaging.kafka.offset": 0,
        "messaging.client.id": "shop",
    }
    kinds = {
        "poll orders": (Span.SPAN_KIND_CLIENT, "receive"),
        "process orders": (Span.SPAN_KIND_CONSUMER, "process"),
        "commit orders": (Span.SPAN_KIND_CLIENT, "settle"),
    }
    for name, (kind, operation) in kinds.items():
        span = receiver.span(name)
        (link,) = span.links
        assert (link.trace_id.hex(), link.span_id.hex()) == (trace_id, span_id)
        assert (span.trace_id.hex() != trace_id, span.kind) == (True, kind)
        assert not span.parent_span_id
        found = attributes(span)
        assert found["messaging.operation.type"] == operation
        assert found["messaging.consumer.group.name"] == "billing"
    assert attributes(receiver.span("poll orders"))["messaging.batch.message_count"] == 1
    handled = receiver.span("process orders")
    assert attributes(handled)["error.type"] == "ValueError"
    assert handled.status.code == Status.STATUS_CODE_ERROR
    assert all(0 < span.start_time_unix_nano <= span.end_time_unix_nano for span in receiver.spans)


def test_a_handler_may_be_a_child_of_what_sent_its_record(
    bootstrap: str, receiver: Receiver
) -> None:
    config = {
        "bootstrap.servers": bootstrap,
        "trace.enable": True,
        "trace.topic": "",
        "trace.otlp.endpoint": f"{receiver.endpoint}/v1/traces",
        "trace.otlp.parent": True,
    }
    trace_id, span_id = send_and_handle(bootstrap, "payments", config)
    handled = receiver.span("process payments")
    assert (handled.trace_id.hex(), handled.parent_span_id.hex()) == (trace_id, span_id)
    assert not handled.links


def test_without_a_receiver_records_go_their_way(bootstrap: str, tmp_path: Path) -> None:
    closed = Receiver()
    closed.close()
    config = {
        "bootstrap.servers": bootstrap,
        "trace.enable": True,
        "trace.topic": "",
        "trace.otlp.endpoint": closed.endpoint,
    }
    with Producer(config) as producer:
        assert producer.send("refunds", b"value").result(30).offset == 0


def test_what_is_no_endpoint_is_said_in_a_sentence() -> None:
    with pytest.raises(SettingError, match="must be an address such as"):
        Producer({"trace.enable": True, "trace.otlp.endpoint": "jaeger:4318"})


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise ImportError

    monkeypatch.setattr(otlp_spans, "OtlpSpans", missing)
    with pytest.raises(MissingPackageError, match=r"pip install '\.\[otel\]'"):
        Producer({"trace.enable": True, "trace.otlp.endpoint": "http://127.0.0.1:4318"})
