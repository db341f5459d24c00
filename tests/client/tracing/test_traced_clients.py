"""Producers and consumers that trace, on a real broker; their steps are read back."""

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.admin import require_all
from headwater.client.admin.admin import Admin
from headwater.client.admin.configs import ConfigChange, ConfigResource, ResourceType
from headwater.client.admin.topics import NewTopic
from headwater.client.consumer.async_consumer import AsyncConsumer
from headwater.client.consumer.consumer import Consumer
from headwater.client.producer.async_producer import AsyncProducer
from headwater.client.producer.intake.interceptors import ProducerInterceptor
from headwater.client.producer.producer import Producer
from headwater.client.producer.record import ProducerRecord
from headwater.client.tracing import topic_shares
from headwater.client.tracing.trace_context import current_trace, sampled_context_of
from headwater.client.tracing.trace_step import (
    ACKNOWLEDGED,
    COMMITTED,
    CREATED,
    FAILED,
    FETCHED,
    HANDLED,
    SENT,
    TRACE_TOPIC,
    TraceLink,
)
from headwater.testing.running_broker import RunningBroker
from tests.support.traffic.traces import read_traces
from tests.support.waiting import eventually

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"
PRODUCED = [CREATED, SENT, ACKNOWLEDGED]

_numbers = itertools.count(1)


@pytest.fixture
def topic(bootstrap: str) -> str:
    name = f"orders-{next(_numbers)}"
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(name, 1)])
    return name


def traced(bootstrap: str, **settings: object) -> dict[str, object]:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return {"bootstrap.servers": bootstrap, "trace.enable": True, **named}


def set_share(bootstrap: str, topic: str, share: float) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        admin.alter_configs({resource: [ConfigChange("trace.sample", share)]})


def read(consumer: Consumer, count: int) -> list[Any]:
    records: list[Any] = []
    while len(records) < count:
        records += consumer.poll(5.0)
    return records


def test_the_way_of_a_message(bootstrap: str, topic: str) -> None:
    with Producer(traced(bootstrap, client_id="shop")) as producer:
        metadata = producer.send(topic, b"value", b"key").result(30)
        assert producer.metrics()["trace-steps-total"] == 3
    config = traced(bootstrap, group_id=topic, auto_offset_reset="earliest")
    with Consumer({**config, "enable.auto.commit": False}) as consumer:
        consumer.subscribe([topic])
        (record,) = read(consumer, 1)
        with consumer.handling(record):
            context = current_trace()
        assert current_trace() is None
        consumer.commit()
        member = consumer.group_identity().member_id
    assert context is not None
    assert context == sampled_context_of(record.headers)
    steps = read_traces(bootstrap).of_message(str(metadata.message_id))
    assert [step.step for step in steps] == [*PRODUCED, FETCHED, HANDLED, COMMITTED]
    assert {step.trace_id for step in steps} == {context.trace_id}
    assert {step.topic for step in steps} == {topic}
    produced, consumed = steps[:3], steps[3:]
    assert {step.client_id for step in produced} == {"shop"}
    assert {step.details["span_id"] for step in produced} == {context.span_id}
    assert [step.message_id for step in produced] == [None, None, f"{topic}-0@0"]
    assert produced[1].attempt == 1
    assert {step.message_id for step in consumed} == {f"{topic}-0@0"}
    assert {(step.group, step.member) for step in consumed} == {(topic, member)}
    assert all(step.host and not step.error for step in steps)


def test_the_same_with_asyncio_and_an_automatic_commit(bootstrap: str, topic: str) -> None:
    async def scenario() -> str:
        async with AsyncProducer(traced(bootstrap)) as producer:
            metadata = await producer.send_and_wait(topic, b"value")
        config = traced(bootstrap, group_id=topic, auto_offset_reset="earliest")
        async with AsyncConsumer(config) as consumer:
            consumer.subscribe([topic])
            async for record in consumer:
                with consumer.handling(record):
                    # Also in what a handler starts.
                    found = await asyncio.create_task(asyncio.to_thread(current_trace))
                    assert found == sampled_context_of(record.headers)
                break
        return str(metadata.message_id)

    message_id = asyncio.run(scenario())
    steps = read_traces(bootstrap).of_message(message_id)
    assert [step.step for step in steps] == [*PRODUCED, FETCHED, HANDLED, COMMITTED]


def test_a_record_joins_the_trace_that_it_carries(bootstrap: str, topic: str) -> None:
    set_share(bootstrap, topic, 0.0)
    sampled, unsampled = (f"00-{TRACE}-{SPAN}-{flags}" for flags in ("01", "00"))
    with Producer(traced(bootstrap)) as producer:
        producer.send(topic, b"1", headers={"traceparent": sampled, "tracestate": "v=1"})
        producer.send(topic, b"2", headers={"traceparent": unsampled})
        producer.send(topic, b"3")
    steps = read_traces(bootstrap).of(topic)
    assert [step.step for step in steps] == PRODUCED
    assert {step.trace_id for step in steps} == {TRACE}
    assert {steps[0].details["parent_span_id"], steps[2].details["parent_span_id"]} == {SPAN}
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        records = read(consumer, 3)
    assert records[0].headers == (("traceparent", sampled.encode()), ("tracestate", b"v=1"))
    assert records[2].headers == ()


def test_what_a_handler_sends_continues_the_trace(bootstrap: str, topic: str) -> None:
    with Producer(traced(bootstrap)) as producer:
        headers = {"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "v=1"}
        producer.send(topic, b"value", headers=headers).result(30)
        with Consumer(traced(bootstrap, auto_offset_reset="earliest")) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            (record,) = read(consumer, 1)
            with consumer.handling(record):
                producer.send(f"{topic}-next", b"value").result(30)
            (following,) = read_one(bootstrap, f"{topic}-next")
    context = sampled_context_of(following.headers)
    assert context is not None
    assert (context.trace_id, context.tracestate) == (TRACE, b"v=1")
    assert context.span_id != SPAN
    steps = read_traces(bootstrap).of(f"{topic}-next")
    assert [step.step for step in steps] == PRODUCED
    assert steps[0].details == {"span_id": context.span_id, "parent_span_id": SPAN}


def read_one(bootstrap: str, topic: str) -> list[Any]:
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        return read(consumer, 1)


def test_headers_that_an_interceptor_adds_count(bootstrap: str, topic: str) -> None:
    class Instrumentation(ProducerInterceptor):
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            return record._replace(headers={"traceparent": f"00-{TRACE}-{SPAN}-01"})

    with Producer(traced(bootstrap), interceptors=[Instrumentation()]) as producer:
        producer.send(topic, b"value")
    assert {step.trace_id for step in read_traces(bootstrap).of(topic)} == {TRACE}


def test_a_share_is_changed_while_a_producer_runs(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_shares.TopicShares.__init__, "__kwdefaults__", {"refresh_s": 0.05})
    set_share(bootstrap, topic, 0.0)
    with Producer(traced(bootstrap)) as producer:
        producer.send(topic, b"not traced").result(30)
        assert producer.metrics()["trace-steps-total"] == 0
        set_share(bootstrap, topic, 1.0)

        def is_traced() -> bool:
            producer.send(topic, b"value").result(30)
            return producer.metrics()["trace-steps-total"] > 0

        assert eventually(is_traced)


def test_ones_own_share_beats_that_of_the_topic(bootstrap: str, topic: str) -> None:
    with Producer(traced(bootstrap, trace_sample=0)) as producer:
        producer.send(topic, b"value").result(30)
        assert producer.metrics()["trace-steps-total"] == 0


def test_a_send_that_fails_is_told_though_it_is_not_sampled(bootstrap: str, topic: str) -> None:
    with Producer(traced(bootstrap, trace_sample=0, max_request_size=10_000)) as producer:
        with pytest.raises(KafkaError):
            producer.send(topic, bytes(20_000))
        with pytest.raises(KafkaError):
            producer.send(topic, bytes(9_000), partition=7)
    steps = read_traces(bootstrap).of(topic)
    assert [step.step for step in steps] == [FAILED] * 2
    # They are of two traces, and may be of one millisecond.
    assert {(step.error or "").partition(":")[0] for step in steps} == {
        "MessageTooLargeError",
        "UnknownTopicError",
    }


def test_batches_that_fail_are_told(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        admin.alter_configs({resource: [ConfigChange("max.message.bytes", 500)]})
    with Producer(traced(bootstrap, linger_ms=10_000)) as producer:
        given = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
        set_share(bootstrap, topic, 0.0)
        traced_one = producer.send(topic, bytes(1000), headers=given)
        untraced_one = producer.send(topic, bytes(1000), headers={"traceparent": "none"})
        producer.flush()
        for future in (traced_one, untraced_one):
            assert future.exception(30) is not None
    steps = read_traces(bootstrap).of(topic)
    failures = [step for step in steps if step.step == FAILED]
    assert sum(step.trace_id == TRACE for step in failures) == 1
    others = [step for step in failures if step.trace_id != TRACE]
    assert all(step.error and step.error.startswith("MessageTooLarge") for step in failures)
    assert sum(int(str(step.details.get("records", 1))) for step in others) == 1


def test_a_handler_that_fails_is_told_though_its_record_is_not_traced(
    bootstrap: str, topic: str
) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        producer.send(topic, b"value").result(30)
    with Consumer(traced(bootstrap, auto_offset_reset="earliest")) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        (record,) = read(consumer, 1)
        with pytest.raises(ValueError, match="no"), consumer.handling(record):
            raise ValueError("no")
    written = read_traces(bootstrap)
    (step,) = written.of(topic)
    assert (step.step, step.error, step.message_id) == (HANDLED, "ValueError: no", f"{topic}-0@0")
    assert TraceLink(f"{topic}-0@0", step.trace_id) in written.links


def test_who_does_not_trace_writes_nothing(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        producer.send(topic, b"value").result(30)
        assert "trace-steps-total" not in producer.metrics()
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        (record,) = read(consumer, 1)
        with consumer.handling(record):
            assert current_trace() is None
        assert not consumer.is_traced
    assert record.headers == ()
    assert read_traces(bootstrap).of(topic) == []


def test_the_topic_of_traces_is_made_as_it_should_be(bootstrap: str, topic: str) -> None:
    with Producer(traced(bootstrap)) as producer:
        producer.send(topic, b"value")
    with Admin(bootstrap_servers=bootstrap) as admin:
        info = require_all(admin.describe_topics([TRACE_TOPIC]))[TRACE_TOPIC]
        resource = ConfigResource(ResourceType.TOPIC, TRACE_TOPIC)
        described = require_all(admin.describe_configs([resource]))[resource]
        entries = {each.name: each.value for each in described}
    assert (info.is_internal, len(info.partitions)) == (True, 2)
    assert entries["cleanup.policy"] == "delete"
    assert entries["retention.ms"] == str(3 * 86_400_000)


def test_steps_that_cannot_be_written_cost_no_record(tmp_path: Path) -> None:
    """There is no topic for them, nor will there be one; and the queue is short."""
    with RunningBroker(tmp_path, settings={"auto.create.topics.enable": "false"}) as broker:
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.create_topics([NewTopic("orders", 1)])
        own = {"trace_sample": 1, "trace_topic": "nowhere", "trace_buffer_steps": 10}
        with Producer(traced(broker.bootstrap, **own)) as producer:
            futures = [producer.send("orders", b"value") for _ in range(100)]
            assert [future.result(30).offset for future in futures] == list(range(100))
            producer.close(1.0)
            metrics = producer.metrics()
        assert metrics["trace-steps-total"] == 300
        assert metrics["trace-steps-dropped-total"] == 300
