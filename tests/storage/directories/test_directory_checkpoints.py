import random

import pytest

from headwater.sim.campaigns.broker_logs import append, open_directory, orders
from headwater.sim.campaigns.logs import NOW_MS
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.checkpoints import OffsetCheckpoint
from headwater.storage.directories.directory_checkpoints import (
    CheckpointTable,
    DirectoryCheckpoints,
)
from headwater.storage.log_config import LogConfig
from headwater.storage.retention import apply_retention, delete_records_before

PATH = "/data/table"


def table_on(disk: FaultyDisk) -> CheckpointTable:
    table = CheckpointTable(disk, PATH)
    table.read()
    return table


def test_a_plan_is_written_when_it_runs() -> None:
    disk = FaultyDisk(directories=["/data"])
    table = table_on(disk)
    plan = table.plan({orders(0): 5})
    assert plan is not None and not disk.exists(PATH)
    plan.run()
    assert table.offsets == {orders(0): 5}
    assert OffsetCheckpoint(disk.crash(random.Random(0)), PATH).read() == {orders(0): 5}


def test_nothing_is_written_that_is_there_already() -> None:
    disk = FaultyDisk(directories=["/data"])
    table = table_on(disk)
    first = table.plan({})
    assert first is not None, "an absent file is not an empty table yet"
    first.run()
    assert table.plan({}) is None
    table.keep({orders(0): 5})
    assert table.plan({orders(0): 5}) is None
    assert table_on(disk).plan({orders(0): 5}) is None


def test_what_is_kept_is_durable_at_once_and_alone() -> None:
    disk = FaultyDisk(directories=["/data"])
    table = table_on(disk)
    table.keep({orders(0): 5, orders(1): 6})
    table.keep({orders(0): 3})
    assert table_on(disk.after_power_loss(random.Random(0))).offsets == {orders(0): 3, orders(1): 6}
    table.keep({orders(1): None, orders(2): None})
    assert table_on(disk.after_power_loss(random.Random(0))).offsets == {orders(0): 3}


def test_a_plan_does_not_take_back_what_was_kept_after_it() -> None:
    table = table_on(FaultyDisk(directories=["/data"]))
    table.keep({orders(0): 50})
    plan = table.plan({orders(0): 100})
    assert plan is not None
    table.keep({orders(0): 50})  # On disk already, and yet the plan would raise it.
    plan.run()
    assert table.offsets == {orders(0): 50}


@pytest.mark.parametrize(
    "content", [b"0\n2\norders 0 5\n", b"\xff", b"1\n0\n", b"0\n1\norders x 1\n"]
)
def test_a_damaged_table_is_taken_for_absent(
    content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FaultyDisk(directories=["/data"])
    disk.open(PATH, create=True).write_at(0, content)
    table = table_on(disk)
    assert table.offsets == {} and not table.is_known
    assert PATH in caplog.text and "ERROR" in caplog.text
    plan = table.plan({})
    assert plan is not None
    plan.run()
    assert table_on(disk).is_known


def test_forgetting_a_partition_clears_all_tables() -> None:
    disk = FaultyDisk(directories=["/data"])
    checkpoints = DirectoryCheckpoints(disk, "/data")
    for table in checkpoints:
        table.keep({orders(0): 5, orders(1): 6})
    checkpoints.forget(orders(0))
    found = DirectoryCheckpoints(disk.crash(random.Random(0)), "/data")
    found.read()
    assert [dict(table.offsets) for table in found] == [{orders(1): 6}] * 4


def test_a_log_start_is_on_record_only_while_it_is_needed() -> None:
    config = LogConfig(segment_bytes=200, retention_bytes=0, file_delete_delay_ms=0)
    disk = FaultyDisk(directories=["/data"])
    directory = open_directory(disk, "/data", config)
    log = directory.loader(orders(0), "/data/orders-0", NOW_MS).load()
    directory.adopt(log, None, is_future=False)
    for _ in range(3):
        append(log, bytes(100))
    log.raise_high_watermark(3)
    starts = directory.checkpoints.log_starts
    plan = directory.plan_log_starts()
    assert plan is not None and plan.offsets == {}, "it starts with its first segment"

    delete_records_before(log, 1)
    apply_retention(log, NOW_MS)
    assert log.log_start_offset == 3
    assert starts.offsets == {orders(0): 3}, "on record before the segments go"
    plan = directory.plan_log_starts()
    assert plan is not None and plan.offsets == {} and plan.sync_first == (log.directory,)
    plan.run()
    assert starts.offsets == {}
    found = disk.crash(random.Random(0))
    assert [n for n in found.list_dir("/data/orders-0") if n.endswith(".log")] == [f"{3:020}.log"]
