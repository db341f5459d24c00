"""Exactly-once copies while clients are killed and the broker restarts and crashes."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from headwater.testing.apache_kafka import KafkaNode
from headwater.testing.broker_process import BrokerProcess, wait_until
from tests.support.other_clients.confluent import ConfluentClient
from tests.support.other_clients.contract import Message
from tests.support.other_clients.groups.raw import committed
from tests.support.other_clients.raw import RawConnection
from tests.support.other_clients.transactions.confluent import ConfluentReader
from tests.support.other_clients.transactions.copier import MARK, Copier
from tests.support.tiers import rounds

#: How many copiers of each client share the work. aiokafka does not tell the broker which member
#: its offsets come from, so a second one could commit what is no longer its own.
COPIERS = {"confluent-kafka": 2, "kafka-python": 1, "aiokafka": 1}
PARTITIONS = 2
RECORDS_PER_ROUND = 40
FINISH_TIMEOUT_S = 90.0


class Copy:
    """One client's copy: a source, a target, and how far its group has come."""

    def __init__(self, client: str, bootstrap: str, name: str) -> None:
        self.client, self.group = client, f"{name}-group"
        self.source, self.target = f"{name}-source", f"{name}-target"
        self.written = 0
        self._name, self._bootstrap = name, bootstrap
        self._confluent = ConfluentClient(bootstrap)
        for topic in (self.source, self.target):
            self._confluent.create_topic(topic, PARTITIONS)

    def copiers(self, logs: Path) -> list[Copier]:
        return [
            Copier(
                self.client,
                self._bootstrap,
                self.group,
                self.source,
                self.target,
                f"{self._name}-{number}",
                logs / f"{self.client}-{number}.txt",
            )
            for number in range(COPIERS[self.client])
        ]

    def write(self) -> None:
        numbers = range(self.written, self.written + RECORDS_PER_ROUND)
        self._confluent.produce(
            self.source, [Message(b"%d" % n, partition=n % PARTITIONS) for n in numbers]
        )
        self.written += RECORDS_PER_ROUND

    def copied(self) -> int:
        """How many records the group has committed."""
        with RawConnection(self._bootstrap) as connection:
            offsets = [
                committed(connection, self.group, self.source, number, stable=True)[0]
                for number in range(PARTITIONS)
            ]
        return sum(max(offset, 0) for offset in offsets)

    def check(self) -> None:
        reader = ConfluentReader(self._bootstrap)
        for number in range(PARTITIONS):
            expected = [MARK + b"%d" % n for n in range(number, self.written, PARTITIONS)]
            assert reader.read(self.target, "read_committed", number) == expected, self.client


def test_each_record_once(
    fragile_broker: BrokerProcess | KafkaNode, new_name: Callable[[], str], tmp_path: Path
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    copies = [Copy(client, fragile_broker.bootstrap, new_name()) for client in COPIERS]
    with ExitStack() as stack:
        copiers = [stack.enter_context(each) for copy in copies for each in copy.copiers(tmp_path)]
        # Each kind of harm comes in every few rounds; which client it hits is left to chance.
        harms = ["a client", "restart", "a client", "crash"]
        if isinstance(fragile_broker, KafkaNode):
            # What becomes of Kafka in a crash is not ours to prove: it began a copy anew once.
            harms.remove("crash")
        for number in range(rounds(4, 12)):
            for copy in copies:
                copy.write()
            wait_until(
                lambda: _keep_up(copiers) and copies[0].copied() > copies[0].written // 2,
                "the copies get on",
                FINISH_TIMEOUT_S,
            )
            # At any moment of a transaction.
            time.sleep(chance.uniform(0, 0.2))
            match harms[number % len(harms)]:
                case "a client":
                    chance.choice(copiers).kill()
                case "restart":
                    fragile_broker.stop()
                    fragile_broker.start()
                case _:
                    fragile_broker.kill()
                    fragile_broker.start()
        wait_until(
            lambda: _keep_up(copiers) and all(each.copied() == each.written for each in copies),
            "all is copied",
            FINISH_TIMEOUT_S,
        )
    for copy in copies:
        copy.check()


def _keep_up(copiers: list[Copier]) -> bool:
    for each in copiers:
        each.keep_up()
    return True
