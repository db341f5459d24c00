"""`headwater consume --formatter` on real topics of coordinators, Kafka's and our own."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

import pytest

from headwater.coordinator.key_hash import partition_for
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.find_coordinator import FindCoordinatorRequest
from headwater.wire.messages.init_producer_id import InitProducerIdRequest
from headwater.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headwater.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.support.brokers.clusters import Cluster
from tests.support.command import Finished, run_command
from tests.support.other_clients.groups.raw import join_alone, wait_for_coordinators
from tests.support.other_clients.raw import RawConnection
from tests.support.waiting import eventually

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
OLD_CLASS = "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter"
NEW_CLASS = "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"
GROUPS_CLASS = "org.apache.kafka.tools.consumer.GroupMetadataMessageFormatter"
TRANSACTIONS_CLASS = "org.apache.kafka.tools.consumer.TransactionLogMessageFormatter"
WEEK_MS = 604_800_000
WITH_RETENTION, BY_NAME, BY_ID = 4, 9, 10

LINE = re.compile(
    r"\[([^,]+),([^,]+),(\d+)\]::\[OffsetMetadata\[(\d+),([^\]]*)\],"
    r"CommitTime (\d+),ExpirationTime (\d+)\]"
)


def commit(
    connection: RawConnection,
    group_id: str,
    topic: str,
    offsets: Mapping[int, int],
    *,
    version: int = BY_ID,
    metadata: str = "",
    retention_ms: int = -1,
) -> None:
    request = OffsetCommitRequest(
        group_id=group_id,
        retention_time_ms=retention_ms,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                topic_id=connection.topic_id(topic),
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=number,
                        committed_offset=offset,
                        committed_leader_epoch=0,
                        committed_metadata=metadata,
                    )
                    for number, offset in offsets.items()
                ],
            )
        ],
    )

    def is_done() -> bool:
        # Asking for the coordinator makes the topic, which takes a moment.
        connection.ask(FindCoordinatorRequest(coordinator_keys=[group_id]), 4)
        # By default, Kafka 4.1 does not offer the version that it has last.
        offered = connection.versions(ApiKey.OFFSET_COMMIT)
        answer = connection.ask(request, min(version, offered[-1]))
        return not any(each.error_code for each in answer.topics[0].partitions)

    eventually(is_done)


def delete(connection: RawConnection, group_id: str, topic: str, partition: int) -> None:
    asked = OffsetDeleteRequestTopic(
        name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=partition)]
    )
    answer = connection.ask(OffsetDeleteRequest(group_id=group_id, topics=[asked]), 0)
    assert (answer.error_code, answer.topics[0].partitions[0].error_code) == (0, 0)


def consume(
    cluster: Cluster, formatter: str, name: str, *options: str, topic: str = OFFSETS_TOPIC
) -> Finished:
    """All records of the partition that is the home of a group or a transactional id."""
    return run_command(
        "consume", *records_of(cluster, topic, name), "--formatter", formatter, *options,
        "-b", cluster.bootstrap,
    )  # fmt: skip


def records_of(cluster: Cluster, topic: str, name: str) -> tuple[str, ...]:
    """The options that name them, for Kafka's console consumer too: how many there are is known."""
    ends = run_command("get-offsets", topic, "-b", cluster.bootstrap).lines
    partition = partition_for(name, len(ends))
    count = dict(line.rsplit(":", 1) for line in ends)[f"{topic}:{partition}"]
    where = ("--topic", topic, "--partition", str(partition), "--offset", "earliest")
    return (*where, "--max-messages", count)


def offsets_of(cluster: Cluster, formatter: str, group_id: str) -> list[str]:
    return [line for line in consume(cluster, formatter, group_id).lines if f"[{group_id}," in line]


def new_topic(cluster: Cluster) -> str:
    name = cluster.new_name()
    where = ("-b", cluster.bootstrap)
    assert run_command("topics", "create", name, "-p", 4, *where).exit_code == 0
    eventually(lambda: run_command("get-offsets", name, *where).exit_code == 0)
    return name


def test_committed_offsets_are_printed_as_the_notes_show_them(cluster: Cluster) -> None:
    topic, group_id = new_topic(cluster), cluster.new_name("group")
    before_ms = int(time.time() * 1000)
    with RawConnection(cluster.bootstrap) as connection:
        commit(connection, group_id, topic, {0: 5})
        commit(connection, group_id, topic, {1: 6}, metadata="note")
        commit(connection, group_id, topic, {2: 7}, version=WITH_RETENTION, retention_ms=5_000)
        commit(connection, group_id, topic, {3: 8})
        delete(connection, group_id, topic, 3)
    after_ms = int(time.time() * 1000)
    printed = offsets_of(cluster, OLD_CLASS, group_id)
    assert printed[-1] == f"[{group_id},{topic},3]::NULL"
    matches = [match for match in map(LINE.fullmatch, printed[:-1]) if match is not None]
    assert [match.group(1, 2, 3, 4, 5) for match in matches] == [
        (group_id, topic, "0", "5", "NO_METADATA"),
        (group_id, topic, "1", "6", "note"),
        (group_id, topic, "2", "7", "NO_METADATA"),
        (group_id, topic, "3", "8", "NO_METADATA"),
    ]
    kept_ms = [int(match[7]) - int(match[6]) for match in matches]
    assert kept_ms == [WEEK_MS, WEEK_MS, 5_000, WEEK_MS]
    assert all(before_ms <= int(match[6]) <= after_ms for match in matches)
    assert offsets_of(cluster, "offsets", group_id) == printed


@pytest.mark.kafka
def test_kafkas_own_formatter_prints_the_same(cluster: Cluster) -> None:
    topic, group_id = new_topic(cluster), cluster.new_name("group")
    with RawConnection(cluster.bootstrap) as connection:
        commit(connection, group_id, topic, {0: 5, 1: 2**40}, version=BY_NAME, metadata="größer")
        commit(connection, group_id, topic, {1: 6})
        commit(connection, group_id, topic, {2: 7}, version=WITH_RETENTION, retention_ms=5_000)
        delete(connection, group_id, topic, 0)
    printed = printed_by_both(cluster, OFFSETS_TOPIC, NEW_CLASS, group_id)
    assert printed.count(f'"{group_id}"') == 5


@pytest.mark.kafka
def test_kafkas_own_formatter_prints_the_same_of_groups(cluster: Cluster) -> None:
    group_id = cluster.new_name("group")
    wait_for_coordinators(cluster.bootstrap, group_id)
    with RawConnection(cluster.bootstrap) as connection:
        join_alone(connection, group_id)
    printed = printed_by_both(cluster, OFFSETS_TOPIC, GROUPS_CLASS, group_id)
    assert f'{{"type":2,"data":{{"group":"{group_id}"}}}}' in printed
    assert '"assignment":"YWxs"' in printed


@pytest.mark.kafka
def test_kafkas_own_formatter_prints_the_same_of_transactions(cluster: Cluster) -> None:
    transactional_id = cluster.new_name("transaction")
    wait_for_coordinators(cluster.bootstrap, transactional_id)
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=60_000
    )
    with RawConnection(cluster.bootstrap) as connection:
        eventually(lambda: connection.ask(request, 5).error_code == 0)
    printed = printed_by_both(cluster, TRANSACTIONS_TOPIC, TRANSACTIONS_CLASS, transactional_id)
    assert f'{{"type":0,"data":{{"transactionalId":"{transactional_id}"}}}}' in printed


def printed_by_both(cluster: Cluster, topic: str, formatter: str, name: str) -> str:
    """What is printed of the partition that records with this name are in."""
    options = (*records_of(cluster, topic, name), "--formatter", formatter)
    ours = run_command("consume", *options, "--json", "-b", cluster.bootstrap)
    # Kafka does not end lines here.
    assert cluster.run_tool("console-consumer", *options) == ours.stdout.replace("\n", "")
    return ours.stdout


def test_other_records_of_the_topic_print_nothing(cluster: Cluster) -> None:
    topic, group_id = new_topic(cluster), cluster.new_name("group")
    with RawConnection(cluster.bootstrap) as connection:
        commit(connection, group_id, topic, {0: 5})
    finished = consume(cluster, "group-metadata", group_id)
    assert finished.exit_code == 0 and group_id not in finished.stdout
    assert offsets_of(cluster, "offsets", group_id) != []


def test_wrong_options(cluster: Cluster) -> None:
    options = ("consume", OFFSETS_TOPIC, "-b", cluster.bootstrap, "--formatter")
    assert run_command(*options, "org.example.Formatter").exit_code == 2
    assert run_command(*options, "offsets", "--property", "print.key=true").exit_code == 2
