"""Every client comes to the end of a compacted topic, and sees each record once.

Of the last batch of a segment compaction may leave nothing but the header. Here there is one in
front of the last segment, which holds an open transaction: to a reader of committed data that
header is the end of the partition.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.base.ids import TopicPartition
from headwater.client.consumer.consumer import Consumer
from headwater.storage.checkpoints import OffsetCheckpoint
from headwater.storage.disk.files import DiskFiles
from headwater.testing.broker_process import wait_until
from tests.support.other_clients.brokers import ADDRESS, BrokerUnderTest, running_broker
from tests.support.other_clients.confluent import ConfluentClient
from tests.support.other_clients.contract import Message
from tests.support.other_clients.groups.raw import wait_for_coordinators
from tests.support.other_clients.raw import RawConnection
from tests.support.other_clients.transactions.confluent import ConfluentTransactions
from tests.support.other_clients.transactions.contract import Isolation, TransactionReader
from tests.support.other_clients.transactions.known import READERS

TOPIC = "settings"
#: How far a reader gets, and what it reads.
ENDS: dict[Isolation, tuple[int, list[bytes]]] = {
    "read_committed": (5, [b"a", b"b", b"c"]),
    "read_uncommitted": (6, [b"a", b"b", b"c", b"open"]),
}


class HeadwaterReader:
    """Our own client; its position is what lag is counted from."""

    name = "headwater"

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def read(self, topic: str, isolation: Isolation, partition: int = 0) -> list[bytes]:
        place = TopicPartition(topic, partition)
        found: list[bytes] = []
        with Consumer(
            bootstrap_servers=self._bootstrap,
            isolation_level=isolation,
            auto_offset_reset="earliest",
        ) as consumer:
            consumer.assign([place])
            while consumer.position(place) < ENDS[isolation][0]:
                found += [record.value or b"" for record in consumer.poll(0.2)]
        return found


@pytest.fixture(scope="module")
def compacted(
    broker_kind: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerUnderTest]:
    """A broker with the topic: a, b and c, two offsets that are compacted away, a transaction."""
    if broker_kind == ADDRESS:
        pytest.skip("this test looks into the broker's directory")
    settings = {"log.cleaner.backoff.ms": "100"}
    with running_broker(broker_kind, tmp_path_factory.mktemp("broker"), settings) as broker:
        wait_for_coordinators(broker.bootstrap)
        confluent = ConfluentClient(broker.bootstrap)
        confluent.create_topic(
            TOPIC, settings={"segment.ms": "60000", "min.cleanable.dirty.ratio": "0"}
        )
        with RawConnection(broker.bootstrap) as connection:
            wait_until(lambda: connection.serves(TOPIC, 1), "the topic is served")
        # So old that the first record of the present begins another segment.
        then_ms = int(time.time() * 1000) - 3_600_000
        for key in (b"a", b"b", b"c"):
            confluent.produce(TOPIC, [Message(key, key=key, timestamp_ms=then_ms)])
        # Nothing tells a compacted topic what records without keys are for, so they go.
        for _ in range(2):
            confluent.produce(TOPIC, [Message(b"no key", timestamp_ms=then_ms)])
        producer = ConfluentTransactions(broker.bootstrap, "open", timeout_ms=600_000)
        producer.begin()
        producer.send(TOPIC, b"open")
        producer.flush()
        confluent.alter_topic(TOPIC, {"cleanup.policy": "compact"})
        wait_until(lambda: _clean_offset(broker) == 5, "the first segment is compacted")
        yield broker
        producer.abort()
        producer.close()


def _clean_offset(broker: BrokerUnderTest) -> int | None:
    assert broker.log_dir is not None
    path = Path(broker.log_dir) / "cleaner-offset-checkpoint"
    return OffsetCheckpoint(DiskFiles(), str(path)).read().get(TopicPartition(TOPIC, 0))


@pytest.mark.parametrize("isolation", ENDS)
@pytest.mark.parametrize("reader", [*READERS, HeadwaterReader], ids=lambda kind: kind.name)
def test_the_end_is_reached(
    reader: type[TransactionReader], isolation: Isolation, compacted: BrokerUnderTest
) -> None:
    assert reader(compacted.bootstrap).read(TOPIC, isolation) == ENDS[isolation][1]
