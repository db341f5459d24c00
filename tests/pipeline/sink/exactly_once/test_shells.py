"""Tasks and drivers of the sink on a real broker, without Spark: what readers see in the end."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pyarrow
import pytest

from headwater.base.errors import KafkaError
from headwater.client.admin import Admin
from headwater.client.producer.producer import Producer
from headwater.pipeline.connector.option_table import Mode
from headwater.pipeline.sink.exactly_once.decision import Pointer
from headwater.pipeline.sink.exactly_once.decision_log import DecisionLog
from headwater.pipeline.sink.exactly_once.driver_shell import (
    DriverShell,
    abort_batch,
    commit_batch,
)
from headwater.pipeline.sink.exactly_once.driver_steps import commit_steps
from headwater.pipeline.sink.exactly_once.effects import Decide
from headwater.pipeline.sink.exactly_once.task_name import QueryName
from headwater.pipeline.sink.exactly_once.task_shell import TaskDone, TaskPlace, write_task
from headwater.pipeline.sink.sink_errors import NoTwoPhaseCommitError, SupersededError
from headwater.pipeline.sink.sink_options import SinkSettings, parse_sink_settings
from headwater.testing.running_broker import RunningBroker
from tests.support.values.whole_topic import create_topic, read_topic


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with RunningBroker() as broker:
        yield broker


class Job:
    """A query that writes to a topic of its own; batch b, partition p writes the row `b.p`."""

    def __init__(self, broker: RunningBroker) -> None:
        self.broker = broker
        self.topic = create_topic(broker.bootstrap, f"out-{uuid.uuid4()}", 1)
        self.query = QueryName(str(uuid.uuid4()))
        self.run = str(uuid.uuid4())

    @property
    def settings(self) -> SinkSettings:
        options = {
            "kafka.bootstrap.servers": self.broker.bootstrap,
            "topic": self.topic,
            "headwater.exactlyOnce": "true",
        }
        return parse_sink_settings(options, Mode.STREAM)

    def restart(self) -> None:
        self.run = str(uuid.uuid4())

    def task(self, batch: int, partition: int, attempt: int = 0) -> TaskDone:
        place = TaskPlace(self.query, self.run, batch, partition, attempt)
        rows = pyarrow.record_batch({"value": [f"{batch}.{partition}".encode()]})
        return write_task(place, self.settings, iter([rows]))

    def commit(self, batch: int, *messages: TaskDone | None) -> None:
        commit_batch(batch, self.settings, messages)

    def commit_until(self, kind: type, batch: int, *messages: TaskDone) -> None:
        """A driver that dies after the first effect of this kind."""
        shell = DriverShell(self.query, batch, self.settings)
        written = [message.written for message in messages if message.written is not None]
        steps = commit_steps(batch, self.run, written)
        answer = None
        try:
            while True:
                effect = steps.send(answer)
                answer = shell._do(effect)
                if isinstance(effect, kind):
                    break
        finally:
            shell.close()

    def seen(self) -> list[bytes]:
        return sorted(read_topic(self.broker.bootstrap, self.topic, 1)[0])

    def open_count(self) -> int:
        with Admin(bootstrap_servers=self.broker.bootstrap) as admin:
            return len(admin.open_transactions(self.query.task_pattern))


def test_rows_are_seen_when_the_batch_is_committed(broker: RunningBroker) -> None:
    job = Job(broker)
    for batch in range(3):
        done = [job.task(batch, partition) for partition in range(2)]
        assert len(job.seen()) == 2 * batch
        assert job.open_count() == 2
        job.commit(batch, *done)
    assert job.seen() == [b"0.0", b"0.1", b"1.0", b"1.1", b"2.0", b"2.1"]
    assert job.open_count() == 0


def test_a_batch_that_comes_again_is_recognised(broker: RunningBroker) -> None:
    job = Job(broker)
    first = [job.task(0, partition) for partition in range(2)]
    # The driver decides, and dies before it ends a transaction.
    job.commit_until(Decide, 0, *first)
    assert job.seen() == []
    job.restart()
    again = [job.task(0, partition) for partition in range(2)]
    assert [message.written for message in again] == [None, None]
    job.commit(0, *again)
    assert job.seen() == [b"0.0", b"0.1"]
    assert job.open_count() == 0


def test_what_a_dead_driver_did_not_decide_is_aborted(broker: RunningBroker) -> None:
    job = Job(broker)
    job.task(0, 0)
    job.task(0, 1)
    job.restart()
    job.commit(0, job.task(0, 0), job.task(0, 1))
    assert job.seen() == [b"0.0", b"0.1"]
    assert job.open_count() == 0


def test_attempts_that_do_not_count(broker: RunningBroker) -> None:
    job = Job(broker)
    # Three attempts of one task are done, two of them alike in all that they know of themselves.
    attempts = [job.task(0, 0), job.task(0, 0), job.task(0, 0, attempt=1)]
    assert len({message.written for message in attempts}) == 3
    job.commit(0, attempts[1])
    assert job.seen() == [b"0.0"]
    assert job.open_count() == 0
    job.commit(1, job.task(1, 0))
    assert job.seen() == [b"0.0", b"1.0"]


def test_an_attempt_that_is_late_gives_up(broker: RunningBroker) -> None:
    job = Job(broker)
    late = TaskPlace(job.query, job.run, 0, 0, attempt=1)
    done = job.task(0, 0)

    def rows() -> Iterator[pyarrow.RecordBatch]:
        yield pyarrow.record_batch({"value": [b"first half"]})
        job.commit(0, done)
        yield pyarrow.record_batch({"value": [b"second half"]})

    with pytest.raises(KafkaError):
        write_task(late, job.settings, rows())
    assert job.open_count() == 0
    with pytest.raises(SupersededError, match="Only one run may use a checkpoint"):
        job.commit(1, job.task(1, 0))
        job.task(0, 0)
    assert job.seen() == [b"0.0", b"1.0"]


def test_a_driver_that_was_replaced_cannot_decide(broker: RunningBroker) -> None:
    old = Job(broker)
    done = old.task(0, 0)
    new = Job(broker)
    new.topic, new.query = old.topic, old.query
    new.commit(0, new.task(0, 0))
    # It finds its batch decided, by transactions that are not its own.
    old.commit(0, done)
    stale = old.task(1, 0)
    new.commit(1, new.task(1, 0))
    new.commit(2, new.task(2, 0))
    with pytest.raises(SupersededError, match="has decided since, and batch 2 was the last"):
        old.commit(1, stale)
    abort_batch(1, old.settings, [stale, None])
    assert old.seen() == [b"0.0", b"1.0", b"2.0"]
    assert old.open_count() == 0


def test_a_failed_batch_is_undone_or_finished(broker: RunningBroker) -> None:
    job = Job(broker)
    abort_batch(0, job.settings, [job.task(0, 0), None])
    assert job.open_count() == 0
    done = job.task(0, 0)
    with pytest.raises(StopIteration):
        job.commit_until(str, 0, done)
    done = job.task(1, 0)
    job.commit_until(Decide, 1, done)
    abort_batch(1, job.settings, [done])
    assert job.seen() == [b"0.0", b"1.0"]
    assert job.open_count() == 0


def test_a_task_without_rows(broker: RunningBroker) -> None:
    job = Job(broker)
    place = TaskPlace(job.query, job.run, 0, 1, 0)
    empty = write_task(place, job.settings, iter([pyarrow.record_batch({"value": [b""]})[:0]]))
    assert empty.written is None
    job.commit(0, job.task(0, 0), empty, None)
    assert job.seen() == [b"0.0"]
    # Nothing at all is written, so there is nothing to decide.
    job.commit(1, empty)
    job.commit(2)
    assert job.open_count() == 0


def test_a_query_that_is_over_is_forgotten(broker: RunningBroker) -> None:
    job = Job(broker)
    commit_batch(0, job.settings, [job.task(0, 0)], is_last=True)
    assert job.seen() == [b"0.0"]
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        assert DecisionLog(job.query, admin, job.settings.client).read_pointer() == Pointer()
    # One that decided nothing leaves nothing to be forgotten.
    place = TaskPlace(job.query, job.run, 0, 1, 0)
    commit_batch(0, job.settings, [write_task(place, job.settings, iter([]))], is_last=True)


def test_a_pointer_that_expired_is_found_again(broker: RunningBroker) -> None:
    job = Job(broker)
    job.commit(0, job.task(0, 0))
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        log = DecisionLog(job.query, admin, job.settings.client)
        before = log.read_pointer()
        admin.delete_groups([job.query.group_id])
        assert log.read_pointer() == before
        assert {entry.task.run for entry in log.read_entries(before)} == {job.run}
    assert job.task(0, 0).written is None


def test_a_record_that_is_too_large_fails_the_task(broker: RunningBroker) -> None:
    job = Job(broker)
    place = TaskPlace(job.query, job.run, 0, 0, 0)
    rows = pyarrow.record_batch({"value": [bytes(2 << 20)]})
    with pytest.raises(KafkaError, match=r"larger than max.request.size"):
        write_task(place, job.settings, iter([rows]))
    assert job.open_count() == 0


def test_brokers_must_let_transactions_wait() -> None:
    settings = {"transaction.two.phase.commit.enable": "false"}
    with RunningBroker(settings=settings) as strict:
        job = Job(strict)
        expected = "set transaction.two.phase.commit.enable=true"
        with pytest.raises(NoTwoPhaseCommitError, match=expected):
            job.task(0, 0)


def test_a_transaction_that_waits_survives_the_broker(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    data_dir = tmp_path_factory.mktemp("broker")
    with RunningBroker(data_dir) as first:
        job = Job(first)
        done = job.task(0, 0)
        port = int(first.bootstrap.rpartition(":")[2])
    with RunningBroker(data_dir, port=port) as second:
        job.broker = second
        job.commit(0, done)
        assert job.seen() == [b"0.0"]
        with Producer(bootstrap_servers=second.bootstrap) as producer:
            producer.send(job.topic, b"plain").result(10)
        assert len(job.seen()) == 2
