"""Arrow batches in and out, on Headwater and on Apache Kafka, beside records of the other kind."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater import Consumer, Producer, TopicPartition
from tests.support.brokers.clusters import Cluster
from tests.support.other_clients.users import create_topic, partitions_of, read_all


def take_arrow(consumer: Consumer, count: int) -> pa.Table:
    batches: list[pa.RecordBatch] = []
    while sum(batch.num_rows for batch in batches) < count:
        batch = consumer.poll_arrow(10.0)
        assert batch.num_rows, f"{sum(each.num_rows for each in batches)} rows came"
        batches.append(batch)
    return pa.Table.from_batches(batches)


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_a_table_goes_in_and_comes_out(cluster: Cluster, codec: str) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name(), 3)
    keys = [b"key-%d" % (number % 50) for number in range(5_000)]
    values = [b"%d" % number if number % 7 else None for number in range(5_000)]
    table = pa.table({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())})
    with Producer({"compression.type": codec}, bootstrap_servers=cluster.bootstrap) as producer:
        producer.send_arrow(topic, table).result(60)
    with Consumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign(partitions_of(topic, 3))
        rows = take_arrow(consumer, 5_000).to_pylist()
    assert len(rows) == 5_000
    # Records of one key stay in order, and where the key belongs.
    placed = {record.key: record.partition for record in read_all(cluster.bootstrap, topic, 3)}
    for key in set(keys):
        mine = [row for row in rows if row["key"] == key]
        assert {row["partition"] for row in mine} == {placed[key]}
        assert [row["value"] for row in mine] == [
            value for other, value in zip(keys, values, strict=True) if other == key
        ]
    for partition in range(3):
        offsets = [row["offset"] for row in rows if row["partition"] == partition]
        assert offsets == list(range(len(offsets)))


def test_both_ways_read_the_same(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    headers = [("a", b"1"), ("b", None)]
    with Producer(bootstrap_servers=cluster.bootstrap, linger_ms=50) as producer:
        for number in range(300):
            producer.send(
                topic,
                b"%d" % number if number % 5 else None,
                b"key" if number % 3 else None,
                headers=headers if number % 2 else (),
                timestamp_ms=1_700_000_000_000 + number,
            )
    records = read_all(cluster.bootstrap, topic)
    with Consumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        rows = take_arrow(consumer, 300).to_pylist()
        assert consumer.position(TopicPartition(topic, 0)) == 300
    assert [
        (
            record.topic,
            record.partition,
            record.offset,
            record.timestamp,
            record.key,
            record.value,
            list(record.headers),
        )
        for record in records
    ] == [
        (
            row["topic"],
            row["partition"],
            row["offset"],
            row["timestamp"],
            row["key"],
            row["value"],
            [(each["key"], each["value"]) for each in row["headers"] or []],
        )
        for row in rows
    ]


def test_rows_that_were_aborted_do_not_come(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    batch = pa.record_batch({"value": pa.array([b"x", b"y"], pa.binary())})
    with Producer(
        bootstrap_servers=cluster.bootstrap, transactional_id=cluster.new_name("tx")
    ) as producer:
        producer.init_transactions()
        for is_kept in (True, False, True):
            producer.begin_transaction()
            producer.send_arrow(topic, batch)
            if is_kept:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    with Consumer(
        bootstrap_servers=cluster.bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        rows = take_arrow(consumer, 4).to_pylist()
        assert consumer.poll_arrow(0.3).num_rows == 0
    assert [row["value"] for row in rows] == [b"x", b"y", b"x", b"y"]


def test_a_group_commits_what_it_took_as_arrow(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    partition = TopicPartition(topic, 0)
    batch = pa.record_batch({"value": pa.array([b"%d" % n for n in range(100)], pa.binary())})
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        producer.send_arrow(topic, batch).result(30)
    with Consumer(
        bootstrap_servers=cluster.bootstrap,
        group_id=cluster.new_name("group"),
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    ) as consumer:
        consumer.subscribe([topic])
        rows = 0
        while not rows:
            rows = consumer.poll_arrow(1.0, max_records=30).num_rows
        assert rows <= 30
        consumer.commit()
        found = consumer.committed([partition])[partition]
        assert found is not None
        assert found.offset == rows
        # The rest comes in the other way.
        assert consumer.poll(10.0, max_records=1)[0].value == b"%d" % rows
