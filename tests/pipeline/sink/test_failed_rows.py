"""Rows that cannot be written become dead letters, on a real broker and without Spark."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator

import pyarrow
import pytest

from headwater.base.ids import TopicPartition
from headwater.client.admin import (
    Admin,
    ConfigChange,
    ConfigResource,
    ResourceType,
    require_all,
)
from headwater.client.consumer.consumer import Consumer
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.producer.errors import TopicNotKnownError
from headwater.pipeline.connector.option_table import Mode
from headwater.pipeline.sink.exactly_once.driver_shell import abort_batch, commit_batch
from headwater.pipeline.sink.exactly_once.task_name import QueryName
from headwater.pipeline.sink.exactly_once.task_shell import TaskPlace, write_task
from headwater.pipeline.sink.failed_rows import WriteName, report_failed
from headwater.pipeline.sink.plain_write import RowsWritten, write_rows
from headwater.pipeline.sink.sink_errors import WriteFailedError
from headwater.pipeline.sink.sink_options import SinkSettings, parse_sink_settings
from headwater.testing.running_broker import RunningBroker
from tests.support.values.whole_topic import create_topic

HEADERS = pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))

#: How long a topic is waited for that does not exist.
SOON = {"kafka.max.block.ms": "2000"}
UNKNOWN, IMPOSSIBLE = "no-such-topic", "no topic at all"


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with RunningBroker(settings={"auto.create.topics.enable": "false"}) as broker:
        yield broker


class Topics:
    """A topic to write to, that takes batches of 2000 bytes, and one for dead letters."""

    def __init__(self, broker: RunningBroker) -> None:
        self.bootstrap = broker.bootstrap
        name = str(uuid.uuid4())
        self.target = create_topic(broker.bootstrap, f"out-{name}", 2)
        self.letters = create_topic(broker.bootstrap, f"dlq.{name}", 1)
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            target = ConfigResource(ResourceType.TOPIC, self.target)
            require_all(admin.alter_configs({target: [ConfigChange("max.message.bytes", "2000")]}))

    def settings(self, **options: str) -> SinkSettings:
        given = {
            "kafka.bootstrap.servers": self.bootstrap,
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": self.letters,
            **options,
        }
        return parse_sink_settings(given, Mode.STREAM)

    def rows(self, no_topic: str) -> pyarrow.RecordBatch:
        """Good ones at 0 and 5; all others cannot be written."""
        far = pyarrow.array([None, None, None, 7, None, 1, None], pyarrow.int32())
        origin = [{"key": "headwater-origin", "value": b"orders-1@77"}]
        headers = [[{"key": "n", "value": b"%d" % number}] for number in range(7)]
        headers[4] += [{"key": None, "value": b"x"}]  # type: ignore[dict-item]
        headers[6] += origin
        return pyarrow.record_batch(
            {
                "topic": [self.target, None, no_topic, *[self.target] * 4],
                "partition": far,
                "key": [b"k%d" % number for number in range(7)],
                "value": [*[b"v%d" % number for number in range(6)], b"6" * 3000],
                "headers": pyarrow.array(headers, HEADERS),
            }
        )

    def read(self, topic: str, partition_count: int) -> list[ConsumerRecord]:
        """All committed records."""
        with Consumer(
            bootstrap_servers=self.bootstrap,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        ) as consumer:
            places = [TopicPartition(topic, number) for number in range(partition_count)]
            consumer.assign(places)
            ends = consumer.end_offsets(places)
            found: list[ConsumerRecord] = []
            while any(consumer.position(place) < ends[place] for place in places):
                found += consumer.poll(1.0)
        return found

    def check(self, query: str, batch: int, began_ms: int, no_topic: str) -> None:
        assert sorted(each.value for each in self.read(self.target, 2)) == [b"v0", b"v5"]
        letters = self.read(self.letters, 1)
        assert [each.key for each in letters] == [b"k1", b"k2", b"k3", b"k4", b"k6"]
        assert [each.value for each in letters] == [b"v1", b"v2", b"v3", b"v4", b"6" * 3000]
        wanted = [None, no_topic, self.target, self.target, self.target]
        classes = [
            "SinkRowError",
            "UnknownTopicError" if no_topic == UNKNOWN else "InvalidTopicError",
            "UnknownTopicError",
            "InvalidRecordError",
            "MessageTooLargeError",
        ]
        for letter, topic, error_class in zip(letters, wanted, classes, strict=True):
            headers = dict(letter.headers)
            assert len(headers) == len(letter.headers)
            number = (letter.key or b"")[1:]
            failed_ms = int(headers["headwater-last-failure"] or b"")
            assert began_ms <= failed_ms <= time.time_ns() // 1_000_000
            error = headers["headwater-error"]
            assert error
            expected = {
                "n": number,
                "headwater-attempts": b"1",
                "headwater-first-failure": str(failed_ms).encode(),
                "headwater-last-failure": str(failed_ms).encode(),
                "headwater-error": error,
                "headwater-error-class": error_class.encode(),
                "headwater-query": query.encode(),
                "headwater-batch": str(batch).encode(),
                "__dlq.errors.topic": (topic or "").encode(),
                "__dlq.errors.group": self.letters.removeprefix("dlq.").encode(),
                "__dlq.errors.delivery.count": b"1",
                "__dlq.errors.message": error,
            }
            if topic is not None:
                expected["headwater-wanted-topic"] = topic.encode()
            if number == b"3":
                expected["headwater-wanted-partition"] = b"7"
            if number == b"6":
                # It says where it was read first.
                expected |= {
                    "headwater-origin": b"orders-1@77",
                    "__dlq.errors.topic": b"orders",
                    "__dlq.errors.partition": b"1",
                    "__dlq.errors.offset": b"77",
                }
            assert headers == expected


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_letters_of_a_write_at_least_once(
    broker: RunningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    topics = Topics(broker)
    began_ms = now_ms()
    settings = topics.settings(**SOON)
    done = write_rows(settings, iter([topics.rows(UNKNOWN)]), lambda: WriteName("copy", 4))
    assert done == RowsWritten(7, 5)
    topics.check("copy", 4, began_ms, UNKNOWN)
    with caplog.at_level(logging.WARNING):
        report_failed(settings, 4, [done, None, RowsWritten(3)])
    assert "Batch 4: 5 rows could not be written and became dead letters" in caplog.text


def test_letters_are_in_the_transaction_of_their_task(broker: RunningBroker) -> None:
    topics = Topics(broker)
    settings = topics.settings(**{"headwater.exactlyOnce": "true"})
    query = QueryName(str(uuid.uuid4()))

    def task(attempt: int) -> object:
        run = str(uuid.UUID(int=attempt))
        return write_task(TaskPlace(query, run, 0, 0, 0), settings, iter([topics.rows(IMPOSSIBLE)]))

    began_ms = now_ms()
    # An attempt that does not count, and one that does.
    abort_batch(0, settings, [task(1)])  # type: ignore[list-item]
    done = task(2)
    commit_batch(0, settings, [done])  # type: ignore[list-item]
    topics.check(query.text, 0, began_ms, IMPOSSIBLE)
    # A batch that comes again is recognised, letters and all.
    commit_batch(0, settings, [task(3)])  # type: ignore[list-item]
    topics.check(query.text, 0, began_ms, IMPOSSIBLE)


def test_a_row_that_is_larger_than_a_request_is_a_letter_too(broker: RunningBroker) -> None:
    topics = Topics(broker)
    batch = pyarrow.record_batch({"value": ["x" * 5000, "y"]})
    settings = topics.settings(topic=topics.target, **{"kafka.max.request.size": "1500"})
    assert write_rows(settings, iter([batch]), lambda: WriteName("q", 0)).failed_count == 1
    [letter] = topics.read(topics.letters, 1)
    assert letter.value == b"x" * 5000
    assert "max.request.size" in (dict(letter.headers)["headwater-error"] or b"").decode()


def test_a_cluster_that_does_not_answer_is_no_fault_of_a_row(broker: RunningBroker) -> None:
    topics = Topics(broker)
    settings = topics.settings(**{"kafka.max.block.ms": "0"})
    with pytest.raises(TopicNotKnownError):
        write_rows(settings, iter([topics.rows(IMPOSSIBLE)]), lambda: WriteName("q", 0))
    assert topics.read(topics.letters, 1) == []


def test_letters_that_cannot_be_written_fail_the_task(broker: RunningBroker) -> None:
    topics = Topics(broker)
    missing = topics.settings(**{"errors.deadletterqueue.topic.name": "dlq.nowhere", **SOON})
    with pytest.raises(WriteFailedError, match=r"'dlq\.nowhere' cannot be written to"):
        write_rows(missing, iter([topics.rows(IMPOSSIBLE)]), lambda: WriteName("q", 0))
