"""A broker counts what it stores and what groups commit, and publishes it to `__audit`."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from headwater.audit import batch_counts, commit_counts
from headwater.audit.rows import AUDIT_TOPIC, encode_row
from headwater.audit.topic_book import make_book
from headwater.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from headwater.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from headwater.wire.records import Record, encode_batch
from tests.support.audit.audit_rows import check_stretches, led_rows
from tests.support.brokers.handler_broker import BASE_TIMESTAMP, HandlerBroker, run_with_broker

MINUTE_MS = 60_000
SETTINGS = {"offsets.topic.num.partitions": "1"}


async def publish(broker: HandlerBroker) -> None:
    publisher = broker.context.audit_publisher
    publisher.look()
    await publisher.publish_all()
    assert publisher.failed_rounds == 0


def counts(broker: HandlerBroker, topic: str) -> Mapping[int, int]:
    found: dict[int, int] = {}
    for row in led_rows(broker.context.partitions):
        if row["tier"] == "broker" and row["topic"] == topic:
            start = row["time_bucket_start"]
            found[start] = found.get(start, 0) + row["count"]
    return found


def bucket(time_ms: int) -> int:
    return (BASE_TIMESTAMP + time_ms) // MINUTE_MS * MINUTE_MS


async def commit(broker: HandlerBroker, group: str, offset: int) -> None:
    request = FindCoordinatorRequest(key=group, key_type=0, coordinator_keys=[group])
    await broker.ask(request, FindCoordinatorResponse)
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequestTopic(name="orders", partitions=[partition])
    answer = await broker.ask(
        OffsetCommitRequest(group_id=group, topics=[topic]), OffsetCommitResponse, version=8
    )
    assert answer.topics[0].partitions[0].error_code == 0


def test_records_are_counted_by_the_bucket_of_their_time(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        broker.append("orders", 0, 1, 2, MINUTE_MS, 3 * MINUTE_MS)
        await publish(broker)
        first = {bucket(0): 3, bucket(MINUTE_MS): 1, bucket(3 * MINUTE_MS): 1}
        assert counts(broker, "orders") == first
        await publish(broker)
        assert counts(broker, "orders") == first, "nothing is counted twice"
        broker.append("orders", 5)
        await publish(broker)
        assert counts(broker, "orders")[bucket(0)] == 4, "what is late amends its bucket"
        check_stretches(led_rows(broker.context.partitions))

    run_with_broker(tmp_path, scenario, SETTINGS)


def test_a_batch_belongs_to_the_bucket_of_its_largest_timestamp(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        times = (BASE_TIMESTAMP, BASE_TIMESTAMP + MINUTE_MS)
        batch = encode_batch([Record(n, time, b"k", b"v") for n, time in enumerate(times)])
        broker.context.partitions.get("orders", 0).append(
            bytearray(batch), acks=1, now_ms=BASE_TIMESTAMP
        )
        await publish(broker)
        assert counts(broker, "orders") == {bucket(MINUTE_MS): 2}

    run_with_broker(tmp_path, scenario, SETTINGS)


def test_counting_goes_on_after_a_restart(tmp_path: Path) -> None:
    async def before(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        broker.append("orders", 0, 1)
        await publish(broker)
        broker.append("orders", 2)  # Nobody publishes it in this life.

    async def after(broker: HandlerBroker) -> None:
        broker.append("orders", 3)
        await publish(broker)
        assert counts(broker, "orders") == {bucket(0): 4}
        check_stretches(led_rows(broker.context.partitions))

    run_with_broker(tmp_path, before, SETTINGS)
    run_with_broker(tmp_path, after, SETTINGS)


def test_nothing_is_made_where_nothing_is_to_tell(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        await publish(broker)
        assert AUDIT_TOPIC not in broker.context.image.topics

    run_with_broker(tmp_path, scenario, SETTINGS)


def test_commits_are_joined_with_what_is_stored(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        broker.append("orders", *range(10))
        await commit(broker, "billing", 4)
        await commit(broker, "billing", 8)
        await publish(broker)
        await commit(broker, "billing", 6)
        await publish(broker)
        rows = led_rows(broker.context.partitions)
        book = make_book(
            "orders", rows, from_ms=0, to_ms=2 * BASE_TIMESTAMP, now_ms=2 * BASE_TIMESTAMP
        )
        (group,) = book.groups
        assert (book.count, book.stored_count) == (10, 10)
        assert (group.out_count, group.doubled_count, group.went_back_count) == (8, 2, 1)
        assert (group.missing_count, group.without_member_count) == (0, 3)
        assert group.latency_ms_max is None, "it is not through with the bucket"
        behind = make_book(
            "orders",
            rows,
            from_ms=0,
            to_ms=2 * BASE_TIMESTAMP,
            now_ms=2 * BASE_TIMESTAMP,
            log_starts={0: 9},
        )
        assert behind.groups[0].missing_count == 1
        await commit(broker, "billing", 10)
        await publish(broker)
        rows = led_rows(broker.context.partitions)
        through = make_book("orders", rows, from_ms=0, to_ms=2 * BASE_TIMESTAMP, now_ms=0)
        assert through.groups[0].out_count == 10
        assert (through.groups[0].latency_ms_max or 0) > 0

    run_with_broker(tmp_path, scenario, SETTINGS)


def test_more_than_one_stretch_can_tell_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_counts, "_COMMITTED_MAX", 3)
    monkeypatch.setattr(batch_counts, "BUCKETS_MAX", 2)

    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        # Slices are large, so what is not counted yet has to come after them.
        for minute in range(4_096 + 4):
            broker.append("orders", -minute * MINUTE_MS)
        for number in range(10):
            await commit(broker, f"group-{number}", 1)
        await publish(broker)
        assert sum(counts(broker, "orders").values()) == 4_100
        assert broker.context.audit_publisher.behind_offsets == 0

    run_with_broker(tmp_path, scenario, SETTINGS)


def test_a_deletion_is_told_though_nothing_else_comes(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        publisher = broker.context.audit_publisher
        publisher.look()
        broker.append("orders", *range(10))
        await publish(broker)
        partition = broker.context.partitions.get("orders", 0)
        for offset in (3, 7):
            partition.delete_records(offset)
            await publish(broker)
            await publish(broker)
        rows = [row for row in led_rows(broker.context.partitions) if "log_starts" in row]
        assert [row["log_starts"][-1][1] for row in rows] == [3, 7]
        assert [(row["from_offset"], row["to_offset"]) for row in rows] == [(10, 10)] * 2
        assert len({encode_row(row).key for row in rows}) == 2

    run_with_broker(tmp_path, scenario, SETTINGS)


@pytest.mark.parametrize("is_enabled", [True, False])
def test_a_switch_turns_it_off(tmp_path: Path, is_enabled: bool) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        broker.append("orders", 0)
        publisher = broker.context.audit_publisher
        await publisher.turn()
        assert (broker.context.partitions.get("orders", 0).client_ids is not None) == is_enabled

    run_with_broker(tmp_path, scenario, {**SETTINGS, "audit.enable": str(is_enabled).lower()})
