"""A broker with `delay.service.enable`: what is written to a level topic arrives later."""

import os
import signal
import time
from pathlib import Path

from headwater import Admin, Consumer, NewTopic, Producer, TopicPartition
from headwater.base.errors import KafkaError
from headwater.client.producer.delay_levels import level_record, parse_levels
from tests.support.brokers.serve_process import serving
from tests.support.waiting import eventually

SETTINGS = (
    *("--set", "delay.service.enable=true"),
    *("--set", "delay.service.levels=200ms,1m"),
    *("--set", "group.initial.rebalance.delay.ms=0"),
)


def test_a_service_runs_beside_the_broker_and_ends_with_it(tmp_path: Path) -> None:
    with serving(tmp_path, *SETTINGS) as broker:
        with Admin(bootstrap_servers=broker.address) as admin:
            admin.create_topics([NewTopic("orders", 1)])

            def is_there() -> bool:
                found = admin.describe_topics(["__delay_200ms"])
                return not isinstance(found["__delay_200ms"], KafkaError)

            assert eventually(is_there)
        service = _child_of(broker.process.pid)
        with Producer(bootstrap_servers=broker.address) as producer:
            written = level_record("orders", 150, levels=parse_levels("200ms,1m"))
            producer.send(written.topic, b"later", headers=written.headers)
        with Consumer(
            bootstrap_servers=broker.address, isolation_level="read_committed"
        ) as consumer:
            consumer.assign([TopicPartition("orders", 0)])
            consumer.seek_to_beginning()
            records = consumer.poll(timeout_s=60)
            assert [record.value for record in records] == [b"later"]
            assert records[0].timestamp <= time.time_ns() // 1_000_000
        code, _, log = broker.stop()
        assert code == 0
        assert "delay service: The delay service is ready" in log
        assert not _is_alive(service)


def test_the_service_does_not_outlive_a_broker_that_is_killed(tmp_path: Path) -> None:
    with serving(tmp_path, *SETTINGS) as broker:
        service = eventually(lambda: _child_of(broker.process.pid))
        broker.stop(signal.SIGKILL)
        assert eventually(lambda: not _is_alive(service))


def _child_of(pid: int) -> int:
    for found in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = found.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            return int(found.parent.name)
    return 0


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
