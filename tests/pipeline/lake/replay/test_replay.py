from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater import Consumer, TopicPartition
from headwater.pipeline.lake.errors import LakeError
from headwater.pipeline.lake.lake_table import LakeTable
from headwater.pipeline.lake.replay.replay import ReplayProgress, replay
from headwater.testing.running_broker import RunningBroker
from tests.support.spark.lakes import DAY_MS, archive, record

#: Recent, or the broker's retention would remove the records at once.
NEVER_DELETED = {"log.retention.ms": "-1", "log.retention.check.interval.ms": "1000000"}
COUNT = 3000


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with RunningBroker(settings=NEVER_DELETED) as running:
        yield running


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> LakeTable:
    """Two partitions over three days, the files of the second overlapping in offsets."""
    table = LakeTable(tmp_path_factory.mktemp("lake") / "archive")
    half = COUNT // 2
    for batch_id, (first, last) in enumerate([(0, half), (half, COUNT)]):
        records = [
            record(number, offset, time_ms=time_of(number, offset))
            for number in (0, 1)
            for offset in range(first, last)
            if offset % 100 != 99
        ]
        archive(
            table,
            records,
            before={("orders", 0): first, ("orders", 1): first},
            after={("orders", 0): last, ("orders", 1): last},
            batch_id=batch_id,
        )
    return table


def time_of(partition: int, offset: int) -> int:
    start_ms = 20_454 * DAY_MS
    if partition == 0:
        return start_ms + offset * 60_000
    return start_ms + offset % 3 * DAY_MS + offset


def consumed(broker: RunningBroker, topic: str, partition: int) -> list[tuple[Any, ...]]:
    one = TopicPartition(topic, partition)
    found: list[tuple[Any, ...]] = []
    with Consumer(
        bootstrap_servers=broker.bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        enable_auto_commit=False,
    ) as consumer:
        consumer.assign([one])
        end = consumer.end_offsets([one])[one]
        while consumer.position(one) < end:
            for each in consumer.poll(timeout_s=10.0):
                headers = [(name, value) for name, value in each.headers]
                found.append((each.key, each.value, each.timestamp, headers))
    return found


def expected(partition: int) -> list[tuple[Any, ...]]:
    rows = []
    for offset in range(COUNT):
        if offset % 100 != 99:
            row = record(partition, offset, time_ms=time_of(partition, offset))
            headers = [(each["key"], each["value"]) for each in row["headers"] or []]
            rows.append((row["key"], row["value"], row["timestamp"] // 1000, headers))
    return rows


def test_a_replay_keeps_everything_and_its_order(broker: RunningBroker, lake: LakeTable) -> None:
    told: list[ReplayProgress] = []
    report = replay(
        lake,
        bootstrap_servers=broker.bootstrap,
        target="again",
        name="whole",
        on_progress=told.append,
    )
    assert report.row_count == 2 * len(expected(0))
    assert consumed(broker, "again", 0) == expected(0)
    assert consumed(broker, "again", 1) == expected(1)
    assert told[-1].row_count == told[-1].row_count_max == report.row_count

    repeated = replay(lake, bootstrap_servers=broker.bootstrap, target="again", name="whole")
    assert repeated.row_count == 0


def test_a_replay_that_was_broken_off_goes_on_without_a_repetition(
    broker: RunningBroker, lake: LakeTable
) -> None:
    class Enough(Exception):
        pass

    def stop(progress: ReplayProgress) -> None:
        if progress.row_count > 1000:
            raise Enough

    settings = {"bootstrap_servers": broker.bootstrap, "target": "halves", "name": "halves"}
    with pytest.raises(Enough):
        replay(lake, rows_per_s=4_000_000, on_progress=stop, **settings)  # type: ignore[arg-type]
    replay(lake, **settings)  # type: ignore[arg-type]
    assert consumed(broker, "halves", 0) == expected(0)
    assert consumed(broker, "halves", 1) == expected(1)


def test_a_range_of_time_goes_to_fewer_partitions_by_key(
    broker: RunningBroker, lake: LakeTable
) -> None:
    broker.create_topic("one", partitions=1)
    start_ms, end_ms = time_of(0, 100), time_of(0, 900)
    replay(
        lake,
        bootstrap_servers=broker.bootstrap,
        topic="orders",
        target="one",
        name="range",
        from_ms=start_ms,
        until_ms=end_ms,
    )
    wanted = [row for number in (0, 1) for row in expected(number) if start_ms <= row[2] < end_ms]
    found = consumed(broker, "one", 0)
    assert sorted(found, key=repr) == sorted(wanted, key=repr)
    of_first = [repr(row) for row in expected(0) if start_ms <= row[2] < end_ms]
    assert [repr(row) for row in found if repr(row) in set(of_first)] == of_first


def test_a_rate_is_kept(broker: RunningBroker, lake: LakeTable) -> None:
    report = replay(
        lake,
        bootstrap_servers=broker.bootstrap,
        target="slow",
        name="slow",
        until_ms=time_of(0, 100),
        rows_per_s=1000,
    )
    # All but the last transaction had to wait for their time.
    assert report.row_count > 600
    assert report.duration_s >= (report.row_count - 250) / 1000


def test_wrong_names_are_told(broker: RunningBroker, lake: LakeTable, tmp_path: Path) -> None:
    where = {"bootstrap_servers": broker.bootstrap, "target": "nowhere"}
    with pytest.raises(LakeError, match="does not hold 'order'; it has orders"):
        replay(lake, topic="order", **where)  # type: ignore[arg-type]
    with pytest.raises(LakeError, match="There is no lake table at"):
        replay(tmp_path, **where)  # type: ignore[arg-type]
    replay(lake, bootstrap_servers=broker.bootstrap, target="again", name="other", until_ms=1)
    with pytest.raises(LakeError, match="another replay"):
        replay(lake, bootstrap_servers=broker.bootstrap, target="again", name="whole", until_ms=1)
