"""Delayed records in a cluster of processes whose leaders are killed in the midst of the hand-over.

    python -m tests.support.traffic.delayed_storm --kills 200 --records 100000

Every round sends some records with delays of a few moments, waits for a part of them to be due and
kills the leader of a partition with `kill -9`. A reader without a group follows all the time. In
the end each record that was acknowledged must have come once, none before its time, and a second
reader must find the same.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from headwater.testing.broker_process import wait_until
from tests.support.brokers.headwater_cluster import HeadwaterCluster
from tests.support.brokers.three_brokers import BROKER_IDS
from tests.support.brokers.zookeeper import fresh_chroot, shared_zookeeper

PARTITION_COUNT: Final = 3
#: Half of a round's records are due while its kill comes, or its restart.
DELAY_MS_MAX: Final = 4_000
PAUSE_S_MAX: Final = 2.0
_TIMEOUT_S: Final = 180.0


class Arrival(NamedTuple):
    partition: int
    offset: int
    value: int
    timestamp_ms: int
    arrived_ms: int


class Figures(NamedTuple):
    """What a storm came to."""

    record_count: int
    kill_count: int
    #: Those whose leader was not restarted before another took over.
    election_count: int
    #: From the due time to a reader, of all records.
    late_p50_ms: int
    late_p99_ms: int
    late_max_ms: int
    seconds: float


class FollowingReader:
    """Reads all partitions from their beginnings, for as long as it is entered."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.arrivals: list[Arrival] = []
        self._is_ending = threading.Event()
        self._error: BaseException | None = None
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "nobody",
                "enable.auto.commit": False,
                # Whatever was shown must stay, to those who do not wait for transactions too.
                "isolation.level": "read_uncommitted",
                "auto.offset.reset": "error",
                "reconnect.backoff.max.ms": 500,
                "fetch.wait.max.ms": 100,
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(topic, each, 0) for each in range(PARTITION_COUNT)])
        self._thread = threading.Thread(target=self._read, name="following reader", daemon=True)

    def wait_for(self, count: int) -> None:
        def have_come() -> bool:
            if self._error is not None:
                raise self._error
            return len(self.arrivals) >= count

        wait_until(have_come, f"{count} records have come", _TIMEOUT_S)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_ending.set()
        self._thread.join(_TIMEOUT_S)
        self._consumer.close()

    def _read(self) -> None:
        try:
            while not self._is_ending.is_set():
                for message in self._consumer.consume(500, 0.1):
                    self._take(message)
        except BaseException as error:
            self._error = error

    def _take(self, message: Message) -> None:
        failure = message.error()
        if failure is not None:
            if failure.code() == KafkaError._PARTITION_EOF or failure.retriable():
                return
            # A broker that is away is tried again.
            assert failure.code() in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN), failure
            return
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None and offset is not None and isinstance(value, bytes)
        arrived_ms = int(time.time() * 1000)
        timestamp_ms = message.timestamp()[1]
        self.arrivals.append(Arrival(partition, offset, int(value), timestamp_ms, arrived_ms))


class DelayedStorm:
    """See the module's text."""

    def __init__(
        self, cluster: HeadwaterCluster, topic: str, seed: int, say: Callable[[str], None] = print
    ) -> None:
        self._cluster = cluster
        self._topic = topic
        self._chance = random.Random(seed)
        self._say = say
        self._failures: list[str] = []
        self._acknowledged_count = 0
        self._election_count = 0
        #: By number, the time before which a record must not come.
        self._earliest_ms: list[int] = []
        self._producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "message.timeout.ms": int(_TIMEOUT_S * 1000),
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )

    def run(self, kill_count: int, record_count: int) -> Figures:
        began_s = time.monotonic()
        with FollowingReader(self._cluster.bootstrap, self._topic) as reader:
            for number in range(kill_count):
                self._send(record_count * (number + 1) // kill_count - len(self._earliest_ms))
                self._producer.poll(self._chance.uniform(0, PAUSE_S_MAX))
                self._kill()
                if number % 10 == 9:
                    self._say(f"{number + 1} kills, {len(reader.arrivals)} records have come")
            self._cluster.heal()
            assert self._producer.flush(_TIMEOUT_S) == 0
            assert not self._failures, self._failures[:3]
            assert self._acknowledged_count == record_count
            reader.wait_for(record_count)
            with FollowingReader(self._cluster.bootstrap, self._topic) as second:
                second.wait_for(record_count)
                # What would come twice comes now.
                self._producer.poll(1.0)
            self._check(reader.arrivals, second.arrivals)
        lateness = sorted(each.arrived_ms - each.timestamp_ms for each in reader.arrivals)
        return Figures(
            record_count,
            kill_count,
            self._election_count,
            lateness[len(lateness) // 2],
            lateness[len(lateness) * 99 // 100],
            lateness[-1],
            time.monotonic() - began_s,
        )

    def _send(self, count: int) -> None:
        for _ in range(count):
            delay_ms = self._chance.randrange(DELAY_MS_MAX)
            number = len(self._earliest_ms)
            self._earliest_ms.append(int(time.time() * 1000) + delay_ms)
            self._producer.produce(
                self._topic,
                b"%d" % number,
                partition=number % PARTITION_COUNT,
                headers={"headwater-delay": f"{delay_ms}ms"},
                on_delivery=self._delivered,
            )
            self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self._acknowledged_count += 1
        else:
            self._failures.append(str(error))

    def _kill(self) -> None:
        partition = self._chance.randrange(PARTITION_COUNT)
        leader = self._cluster.leader_of(self._topic, partition)
        if leader not in BROKER_IDS:
            leader = self._chance.choice(BROKER_IDS)
        broker = self._cluster.brokers[leader]
        broker.kill()
        if self._chance.random() < 0.5:
            among = self._cluster.others(leader)
            self._cluster.wait_for_leader(self._topic, partition, among)
            self._election_count += 1
        broker.start()
        # Two of three must follow before the next goes, or there is nobody to take over.
        for each in range(PARTITION_COUNT):
            self._cluster.wait_in_sync(self._topic, each, len(BROKER_IDS))

    def _check(self, first: list[Arrival], second: list[Arrival]) -> None:
        """Each once, none early, in order, and the same for whoever reads."""
        expected = list(range(len(self._earliest_ms)))
        for arrivals in (first, second):
            assert sorted(each.value for each in arrivals) == expected
            for partition in range(PARTITION_COUNT):
                due = [each.timestamp_ms for each in arrivals if each.partition == partition]
                assert due == sorted(due)
        for each in first:
            assert each.arrived_ms >= each.timestamp_ms >= self._earliest_ms[each.value], each
        places = [
            {(each.partition, each.offset): each.value for each in arrivals}
            for arrivals in (first, second)
        ]
        assert places[0] == places[1]


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill leaders in the midst of the hand-over.")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        address = shared_zookeeper().address + fresh_chroot()
        with HeadwaterCluster(Path(directory), address) as cluster:
            topic = cluster.create_topic("delayed", PARTITION_COUNT, {"delay.mode": "header"})
            storm = DelayedStorm(
                cluster, topic, options.seed, lambda line: print(line, file=sys.stderr, flush=True)
            )
            try:
                print(storm.run(options.kills, options.records))
            except BaseException:
                print(cluster.logs(), file=sys.stderr)
                raise


if __name__ == "__main__":
    main()
