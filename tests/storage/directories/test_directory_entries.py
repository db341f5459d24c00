import string
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.directories.directory_entries import (
    NAME_LENGTH_MAX,
    DirectoryEntry,
    EntryKind,
    deleted_name,
    entry_path,
    future_name,
    list_entries,
    log_name,
    parse_directory_name,
    stray_name,
)

UNIQUE_ID = uuid.UUID("e8ba51a6-1625-4b8e-8844-373883664930")
HEX = UNIQUE_ID.hex

topics = st.text(string.ascii_letters + string.digits + "._-", min_size=1, max_size=249).filter(
    lambda name: name not in (".", "..", "__cluster_metadata")
)
partitions = st.builds(TopicPartition, topics, st.integers(0, 99_999))


@given(partitions)
def test_a_log_is_found_under_its_name(partition: TopicPartition) -> None:
    name = log_name(partition)
    assert parse_directory_name(name) == DirectoryEntry(name, EntryKind.LOG, partition)


@given(partitions)
def test_names_of_logs_out_of_service_fit_a_file_system(partition: TopicPartition) -> None:
    for name, kind in (
        (deleted_name(partition, UNIQUE_ID), EntryKind.DELETED),
        (stray_name(partition, UNIQUE_ID), EntryKind.STRAY),
    ):
        entry = parse_directory_name(name)
        assert len(name) <= NAME_LENGTH_MAX
        assert entry.kind is kind and entry.partition is not None
        assert entry.partition.partition == partition.partition
        assert partition.topic.startswith(entry.partition.topic)


def test_names_are_those_that_kafka_gives() -> None:
    partition = TopicPartition("x" * 249, 12)
    assert deleted_name(partition, UNIQUE_ID) == f"{'x' * 212}-12.{HEX}-delete"
    assert stray_name(partition, UNIQUE_ID) == f"{'x' * 213}-12.{HEX}-stray"
    assert future_name(TopicPartition("a.b-c", 3), UNIQUE_ID) == f"a.b-c-3.{HEX}-future"


def test_a_future_log_keeps_its_whole_topic_or_is_refused() -> None:
    longest = TopicPartition("x" * 213, 1)
    assert parse_directory_name(future_name(longest, UNIQUE_ID)).partition == longest
    with pytest.raises(KafkaError, match="256 characters"):
        future_name(TopicPartition("x" * 214, 1), UNIQUE_ID)


def test_a_partition_number_too_long_for_a_directory_is_refused() -> None:
    with pytest.raises(KafkaError, match="260 characters"):
        log_name(TopicPartition("x" * 249, 2**31 - 1))


@pytest.mark.parametrize(
    "name",
    [
        "lost+found",
        "orders",
        "orders-",
        "-0",
        "orders-x",
        "orders-01",
        "orders-0-delete",
        "orders-delete",
        "orders-0.abc-delete",
        f"orders-0.{HEX.upper()}-delete",
        f"orders-0.{HEX}-gone",
        f"orders.{HEX}-delete",
        f".{HEX}-delete",
        "or ders-0",
        f"or ders-0.{HEX}-delete",
        "orders-0.backup",
        "orders-0\n",
    ],
)
def test_anything_else_is_foreign(name: str) -> None:
    assert parse_directory_name(name) == DirectoryEntry(name, EntryKind.FOREIGN)


def test_names_of_kraft_are_never_taken_for_ours() -> None:
    for name in ("__cluster_metadata-0", f"__cluster_metadata-0.{HEX}-delete"):
        assert parse_directory_name(name).kind is EntryKind.CLUSTER_METADATA


def test_listing_has_directories_only() -> None:
    disk = FaultyDisk(directories=["/data/b-0", "/data/a-10", f"/data/a-1.{HEX}-future", "/data/x"])
    for name in ("meta.properties", "c-0"):
        disk.open(f"/data/{name}", create=True).close()
    assert [(entry.name, entry.kind) for entry in list_entries(disk, "/data")] == [
        (f"a-1.{HEX}-future", EntryKind.FUTURE),
        ("a-10", EntryKind.LOG),
        ("b-0", EntryKind.LOG),
        ("x", EntryKind.FOREIGN),
    ]


@pytest.mark.parametrize(
    "name",
    ["..", ".", "", "../x-0", "a/b-0", "/x-0", "x", "x-01", "x-", "-0", "..-0", "x-0\n", "x\0-0"],
)
def test_only_a_logs_name_has_a_place_in_a_log_directory(name: str) -> None:
    with pytest.raises(KafkaError):
        entry_path("/data", name)


def test_the_place_of_a_log_is_in_its_log_directory() -> None:
    partition = TopicPartition("orders", 3)
    for name in (
        log_name(partition),
        future_name(partition, UNIQUE_ID),
        deleted_name(partition, UNIQUE_ID),
        stray_name(partition, UNIQUE_ID),
    ):
        assert entry_path("/data", name) == f"/data/{name}"
    with pytest.raises(KafkaError):
        entry_path("/data", "__cluster_metadata-0")
