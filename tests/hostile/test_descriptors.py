"""A broker that may open few files, and peers that take one each."""

import resource
import time
from collections.abc import Sequence
from pathlib import Path

from headwater.testing.broker_process import wait_until
from headwater.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from headwater.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from headwater.wire.records import Record, encode_batch
from tests.support.brokers.hostile_broker import PRODUCE_VERSION, AttackedBroker, attacked_broker
from tests.support.other_clients.raw import RawConnection

DESCRIPTORS_MAX = 192
PARTITION_COUNT = 30


def with_descriptors(soft: int, hard: int) -> Sequence[str]:
    """What runs a command under these limits."""
    return ("/usr/bin/prlimit", f"--nofile={soft}:{hard}")


def create_topic(broker: AttackedBroker) -> None:
    topic = CreatableTopic(name="wide", num_partitions=PARTITION_COUNT, replication_factor=1)
    with RawConnection(broker.bootstrap) as connection:
        answer = connection.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 5)
        assert [each.error_code for each in answer.topics] == [0]


def produce_everywhere(broker: AttackedBroker, connection: RawConnection) -> None:
    """With acks=all, so that each partition is written and synced."""
    batch = encode_batch([Record(0, int(time.time() * 1000), None, b"x" * 2000)])
    partitions = [
        PartitionProduceData(index=number, records=batch) for number in range(PARTITION_COUNT)
    ]
    topic = TopicProduceData(name="wide", partition_data=partitions)
    request = ProduceRequest(acks=-1, timeout_ms=20_000, topic_data=[topic])
    answer = connection.ask(request, PRODUCE_VERSION)
    codes = {each.error_code for each in answer.responses[0].partition_responses}
    assert codes == {0}, broker.tail()


def test_connections_do_not_take_the_descriptors_of_logs(tmp_path: Path) -> None:
    prefix = with_descriptors(DESCRIPTORS_MAX, DESCRIPTORS_MAX)
    with attacked_broker(tmp_path, command_prefix=prefix, dials=False) as broker:
        create_topic(broker)
        with RawConnection(broker.bootstrap) as connection:
            produce_everywhere(broker, connection)
            for _ in range(2):
                # It holds what it has room for, and closes the others at once.
                broker.open_sockets(DESCRIPTORS_MAX)
                produce_everywhere(broker, connection)
            assert broker.descriptor_count() < DESCRIPTORS_MAX
            wait_until(
                lambda: "is not accepted" in broker.output.read_text(), "the log tells of it"
            )
            output = broker.output.read_text()
            assert "offline" not in output
            assert output.count("is not accepted") == 1, "a line now and then"
            broker.close_sockets()
            wait_until(lambda: broker.settled(2), "all is given back")
            produce_everywhere(broker, connection)


def test_the_limit_is_raised_as_far_as_it_may_be(tmp_path: Path) -> None:
    prefix = with_descriptors(64, 1024)
    with attacked_broker(tmp_path, command_prefix=prefix) as broker:
        broker.open_sockets(100)
        broker.wait_rounds(20)
        assert resource.prlimit(broker.pid, resource.RLIMIT_NOFILE) == (1024, 1024)
