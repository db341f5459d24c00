"""Dead letters in a cluster of processes whose leaders are killed while letters are moved.

    python -m tests.support.traffic.dead_letter_storm --kills 100 --records 50000

Every round sends some records on to a retry topic, some of which are given up at once, and kills
the leader of one of its partitions, or of the dead-letter topic's, with `kill -9`. In the end each
record must be where it belongs, once, for readers of what is committed.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

from confluent_kafka import KafkaError, Message, Producer

from headwater import Consumer, TopicPartition
from headwater.testing.broker_process import wait_until
from tests.support.brokers.headwater_cluster import HeadwaterCluster
from tests.support.brokers.three_brokers import BROKER_IDS
from tests.support.brokers.zookeeper import fresh_chroot, shared_zookeeper
from tests.support.traffic.traffic import PARTITION_COUNT

_TIMEOUT_S: Final = 180.0
_PAUSE_S_MAX: Final = 1.5


class Figures(NamedTuple):
    """What a storm came to."""

    letter_count: int
    shown_count: int
    kill_count: int
    seconds: float


class DeadLetterStorm:
    """See the module's text."""

    def __init__(self, cluster: HeadwaterCluster, group: str, seed: int) -> None:
        self._cluster = cluster
        self._chance = random.Random(seed)
        self.dead_topic, self.retry_topic = f"dlq.{group}", f"retry.{group}"
        cluster.create_topic(
            self.dead_topic, PARTITION_COUNT, {"errors.deadletterqueue.group.enable": "true"}
        )
        cluster.create_topic(
            self.retry_topic,
            PARTITION_COUNT,
            {
                "delay.mode": "retry",
                "retry.delays": "100ms,2s",
                "retry.dead.letter.topic": self.dead_topic,
            },
        )
        self._failures: list[str] = []
        #: By value, whether it is a dead letter.
        self._sent: dict[bytes, bool] = {}
        self._producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "enable.idempotence": True,
                "message.timeout.ms": int(_TIMEOUT_S * 1000),
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )

    def run(self, kill_count: int, record_count: int) -> Figures:
        began_s = time.monotonic()
        for number in range(kill_count):
            self._send(record_count * (number + 1) // kill_count - len(self._sent))
            self._producer.poll(self._chance.uniform(0, _PAUSE_S_MAX))
            self._kill()
        self._cluster.heal()
        assert self._producer.flush(_TIMEOUT_S) == 0
        assert not self._failures, self._failures[:3]
        letters = sorted(value for value, is_dead in self._sent.items() if is_dead)
        shown = sorted(value for value, is_dead in self._sent.items() if not is_dead)
        self._await_all(self.dead_topic, letters)
        self._await_all(self.retry_topic, shown)
        return Figures(len(letters), len(shown), kill_count, time.monotonic() - began_s)

    def _send(self, count: int) -> None:
        for _ in range(count):
            value = b"%d" % len(self._sent)
            is_dead = self._sent[value] = self._chance.random() < 0.7
            self._producer.produce(
                self.retry_topic,
                value,
                key=value,
                headers={"headwater-dead": "storm"} if is_dead else {},
                on_delivery=self._delivered,
            )
            self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failures.append(str(error))

    def _kill(self) -> None:
        topic = self._chance.choice((self.retry_topic, self.retry_topic, self.dead_topic))
        partition = self._chance.randrange(PARTITION_COUNT)
        leader = self._cluster.leader_of(topic, partition)
        if leader not in BROKER_IDS:
            leader = self._chance.choice(BROKER_IDS)
        broker = self._cluster.brokers[leader]
        broker.kill()
        if self._chance.random() < 0.5:
            self._cluster.wait_for_leader(topic, partition, self._cluster.others(leader))
        broker.start()
        # Two of three must follow before the next goes, or there is nobody to take over.
        for each in (self.retry_topic, self.dead_topic):
            for number in range(PARTITION_COUNT):
                self._cluster.wait_in_sync(each, number, len(BROKER_IDS))

    def _await_all(self, topic: str, expected: list[bytes]) -> None:
        """All have come, once, and so it stays."""
        wait_until(
            lambda: len(self._read(topic)) >= len(expected), f"all are in {topic}", _TIMEOUT_S
        )
        time.sleep(1.0)  # What would come twice comes now.
        assert sorted(self._read(topic)) == expected

    def _read(self, topic: str) -> list[bytes]:
        """What a reader of committed data finds up to the end."""
        values: list[bytes] = []
        with Consumer(
            bootstrap_servers=self._cluster.bootstrap,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        ) as consumer:
            partitions = [TopicPartition(topic, number) for number in range(PARTITION_COUNT)]
            consumer.assign(partitions)
            ends = consumer.end_offsets(partitions)
            while any(consumer.position(each) < end for each, end in ends.items()):
                values += [record.value or b"" for record in consumer.poll(timeout_s=1)]
        return values


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill leaders while dead letters are moved.")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        address = shared_zookeeper().address + fresh_chroot()
        with HeadwaterCluster(Path(directory), address) as cluster:
            storm = DeadLetterStorm(cluster, "storm", options.seed)
            print(storm.run(options.kills, options.records))


if __name__ == "__main__":
    main()
