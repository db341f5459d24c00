"""ListOffsets: the ends of partitions and offsets by time, in the versions that know them."""

from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.net.peer_identity import ANONYMOUS, PeerIdentity
from headwater.storage.producers.entry import AppendOrigin
from headwater.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from headwater.wire.records import (
    ControlType,
    Record,
    encode_batch,
    encode_end_transaction_marker,
)
from tests.support.brokers.handler_broker import BASE_TIMESTAMP, HandlerBroker, run_with_broker
from tests.support.models.hidden_log import append_delayed

Found = tuple[int, int, int, int]
"""Error code, offset, timestamp, leader epoch."""

UNKNOWN: Found = (ErrorCode.NONE, -1, -1, -1)


async def ask(
    broker: HandlerBroker,
    *asked: tuple[str, int, int],
    version: int = 10,
    isolation_level: int = 0,
    current_leader_epoch: int = -1,
    replica_id: int = -1,
) -> dict[tuple[str, int], Found]:
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for topic, partition, timestamp in asked:
        topics.setdefault(topic, []).append(
            ListOffsetsPartition(
                partition_index=partition,
                timestamp=timestamp,
                current_leader_epoch=current_leader_epoch,
            )
        )
    request = ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=isolation_level,
        topics=[ListOffsetsTopic(name=name, partitions=each) for name, each in topics.items()],
    )
    answer = await broker.ask(request, ListOffsetsResponse, version=version)
    return {
        (topic.name, partition.partition_index): (
            partition.error_code,
            partition.offset,
            partition.timestamp,
            partition.leader_epoch,
        )
        for topic in answer.topics
        for partition in topic.partitions
    }


async def find(
    broker: HandlerBroker, timestamp: int, version: int = 10, isolation_level: int = 0
) -> Found:
    found = await ask(broker, ("t", 0, timestamp), version=version, isolation_level=isolation_level)
    return found["t", 0]


async def filled(broker: HandlerBroker) -> None:
    await broker.create_topic("t", partitions=3)
    broker.append("t", 100, 500, 300, 500, 200)


@pytest.mark.parametrize("version", range(1, 12))
def test_the_ends_and_the_largest_timestamp(tmp_path: Path, version: int) -> None:
    epoch = 0 if version >= 4 else -1
    refused = (ErrorCode.UNSUPPORTED_VERSION, -1, -1, -1)

    async def scenario(broker: HandlerBroker) -> None:
        await filled(broker)
        broker.context.partitions.get("t", 0).delete_records(1)
        latest, earliest = (0, 5, -1, epoch), (0, 1, -1, epoch)
        youngest = (0, 1, BASE_TIMESTAMP + 500, epoch)
        assert await find(broker, -1, version) == latest
        assert await find(broker, -2, version) == earliest
        assert await find(broker, -3, version) == (youngest if version >= 7 else refused)
        assert await find(broker, -4, version) == (earliest if version >= 8 else refused)
        assert await find(broker, -5, version) == (UNKNOWN if version >= 9 else refused)
        assert await find(broker, -6, version) == (UNKNOWN if version >= 11 else refused)
        assert await find(broker, -7, version) == refused
        assert await find(broker, -(2**63), version) == refused

    run_with_broker(tmp_path, scenario)


@pytest.mark.parametrize("isolation_level", [0, 1])
def test_the_end_of_consumers_lies_in_front_of_hidden_batches(
    tmp_path: Path, isolation_level: int
) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await filled(broker)
        partition = broker.context.partitions.get("t", 0)
        append_delayed(partition.log, b"hidden", append_ms=BASE_TIMESTAMP + 900)
        partition.advance_high_watermark()
        assert partition.high_watermark == 6
        assert await find(broker, -1, isolation_level=isolation_level) == (0, 5, -1, 0)
        assert await find(broker, BASE_TIMESTAMP + 501) == UNKNOWN
        broker.become_broker(2)
        real = await ask(broker, ("t", 0, -1), replica_id=2, isolation_level=isolation_level)
        assert real["t", 0] == (0, 6, -1, 0)

    run_with_broker(tmp_path, scenario)


def test_where_all_is_shown_later_the_largest_timestamp_is_one_that_is_shown(
    tmp_path: Path,
) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("t")
        broker.append("t", 100, 200, 300, 400)
        log = broker.context.partitions.get("t", 0).log
        expected = [UNKNOWN, *((0, n, BASE_TIMESTAMP + 100 * (n + 1), 0) for n in range(4))]
        for log.shown_end, found in enumerate(expected):
            assert await find(broker, -3) == found

    run_with_broker(tmp_path, scenario)


def test_the_first_record_that_is_not_older_is_found(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await filled(broker)
        first, second = (0, 0, BASE_TIMESTAMP + 100, 0), (0, 1, BASE_TIMESTAMP + 500, 0)
        assert await find(broker, 0) == first
        assert await find(broker, BASE_TIMESTAMP + 100) == first
        assert await find(broker, BASE_TIMESTAMP + 101) == second
        assert await find(broker, BASE_TIMESTAMP + 500) == second
        assert await find(broker, BASE_TIMESTAMP + 501) == UNKNOWN
        assert await find(broker, 2**63 - 1) == UNKNOWN

    run_with_broker(tmp_path, scenario)


def test_an_empty_partition_and_ones_that_do_not_exist(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await filled(broker)
        missing = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1, -1)
        found = await ask(
            broker, ("t", 1, -1), ("t", 2, -2), ("t", 77, -1), ("other", 0, -1), ("t", -1, -1)
        )
        assert found == {
            ("t", 1): (0, 0, -1, 0),
            ("t", 2): (0, 0, -1, 0),
            ("t", 77): missing,
            ("t", -1): missing,
            ("other", 0): missing,
        }
        assert (await ask(broker, ("t", 1, -3), ("t", 2, 0))) == {
            ("t", 1): UNKNOWN,
            ("t", 2): UNKNOWN,
        }

    run_with_broker(tmp_path, scenario)


def test_a_partition_that_is_named_twice_is_refused_once(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await filled(broker)
        found = await ask(broker, ("t", 0, -1), ("t", 0, -2), ("t", 1, -1))
        assert found == {
            ("t", 0): (ErrorCode.INVALID_REQUEST, -1, -1, -1),
            ("t", 1): (0, 0, -1, 0),
        }

    run_with_broker(tmp_path, scenario)


def test_the_leader_epoch_of_the_client_is_checked(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await filled(broker)
        for epoch, code in ((0, ErrorCode.NONE), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)):
            found = await ask(broker, ("t", 0, -1), current_leader_epoch=epoch)
            assert found["t", 0][0] == code
            # Before version 4 it is not on the wire.
            found = await ask(broker, ("t", 0, -1), current_leader_epoch=epoch, version=3)
            assert found["t", 0][0] == ErrorCode.NONE

    run_with_broker(tmp_path, scenario)


def test_readers_of_committed_records_stop_at_the_open_transaction(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("t")
        partition = broker.context.partitions.get("t", 0)
        broker.append("t", 100)
        batch = encode_batch(
            [Record(0, BASE_TIMESTAMP + 900, b"key", b"value")],
            producer_id=7,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
        partition.append(bytearray(batch), acks=1, now_ms=BASE_TIMESTAMP)
        assert await find(broker, -1) == (0, 2, -1, 0)
        assert await find(broker, -1, isolation_level=1) == (0, 1, -1, 0)
        assert await find(broker, -3) == (0, 1, BASE_TIMESTAMP + 900, 0)
        for timestamp in (-3, BASE_TIMESTAMP + 900):
            assert await find(broker, timestamp, isolation_level=1) == UNKNOWN
        # Another broker copies the log to its end, whatever becomes of the transaction. Whoever
        # only says that it is one sees what consumers see; those who debug see all.
        for replica_id, is_broker, end in (
            (1, True, 2),
            (1, False, 1),
            (2, True, 1),
            (-2, False, 2),
        ):
            broker.connection.identity = PeerIdentity(1) if is_broker else ANONYMOUS
            found = await ask(broker, ("t", 0, -1), replica_id=replica_id, isolation_level=1)
            assert found["t", 0] == (0, end, -1, 0)
        marker = encode_end_transaction_marker(
            ControlType.COMMIT,
            producer_id=7,
            producer_epoch=0,
            coordinator_epoch=0,
            timestamp_ms=BASE_TIMESTAMP,
        )
        partition.append(
            bytearray(marker), acks=1, now_ms=BASE_TIMESTAMP, origin=AppendOrigin.COORDINATOR
        )
        assert await find(broker, -1, isolation_level=1) == (0, 3, -1, 0)
        assert (await find(broker, -1, isolation_level=2))[0] == ErrorCode.INVALID_REQUEST

    run_with_broker(tmp_path, scenario)
