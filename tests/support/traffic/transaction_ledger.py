"""A user of transactions who keeps a ledger, and compares it with what readers find."""

from __future__ import annotations

import random

from headwater.base.errors import KafkaError
from headwater.client.producer.producer import Producer
from tests.support.logs.delivery_check import disorder, doubles, torn


class TransactionLedger:
    def __init__(self, topic: str, partition_count: int, seed: int) -> None:
        self.sizes: dict[int, int] = {}
        self.committed: list[int] = []
        self._topic = topic
        self._generator = random.Random(seed)
        self._sent: dict[int, list[bytes]] = {number: [] for number in range(partition_count)}

    def transact(self, producer: Producer) -> None:
        """One transaction, committed or aborted; aborted also where an error asks for it."""
        number = len(self.sizes)
        self.sizes[number] = self._generator.randrange(1, 12)
        try:
            producer.begin_transaction()
            for index in range(self.sizes[number]):
                partition = self._generator.randrange(len(self._sent))
                value = b"%d:%d" % (number, index)
                self._sent[partition].append(value)
                producer.send(self._topic, value, partition=partition)
            if self._generator.random() < 0.7:
                producer.commit_transaction()
                self.committed.append(number)
            else:
                producer.abort_transaction()
        except KafkaError:
            producer.abort_transaction()

    def faults(self, found: dict[int, list[bytes]]) -> list[str]:
        """What is wrong with what a read_committed reader found."""
        everything = [value for values in found.values() for value in values]
        present = {int(value.split(b":")[0]) for value in everything}
        wrong = torn(self.sizes, everything)
        wrong += [f"{n} was committed" for n in self.committed if n not in present]
        wrong += [f"{n} was aborted" for n in present if n not in self.committed]
        for partition, values in found.items():
            wrong += doubles(values) + disorder(self._sent[partition], values)
        return wrong
