"""`headwater audit ids`: loss and doubles that were planted are told exactly."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater import AsyncProducer, Consumer, ConsumerRecord, Producer, TopicPartition
from headwater.base.audit_id import AuditId, audit_id_of
from headwater.testing import broker
from headwater.testing.running_broker import RunningBroker
from tests.support.async_tests import run_async
from tests.support.command import Finished, run_command


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    with broker() as one:
        yield one


def ids(running: RunningBroker, *arguments: object) -> Finished:
    return run_command("audit", "ids", *arguments, "--grace", "0", "-b", running.bootstrap)


def document(running: RunningBroker, *arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ids(running, *arguments, "--json").stdout)
    return found


def producer(running: RunningBroker, **settings: Any) -> Producer:
    return Producer(bootstrap_servers=running.bootstrap, audit_ids_enable=True, **settings)


def records_of(running: RunningBroker, topic: str, count: int) -> list[ConsumerRecord]:
    found: list[ConsumerRecord] = []
    with Consumer(
        bootstrap_servers=running.bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
    ) as consumer:
        consumer.assign([TopicPartition(topic, each) for each in range(2)])
        while len(found) < count:
            found += consumer.poll(1.0)
    return found


def ids_of(records: list[ConsumerRecord]) -> list[AuditId]:
    found = [audit_id_of(record.headers) for record in records]
    return [each for each in found if each is not None]


def copy(
    running: RunningBroker, topic: str, records: list[ConsumerRecord], times: Callable[[int], int]
) -> None:
    """What a replicator does, as often as `times` says for each number."""
    with Producer(bootstrap_servers=running.bootstrap) as writer:
        for record in records:
            audit_id = audit_id_of(record.headers)
            assert audit_id is not None
            for _ in range(times(audit_id.number)):
                writer.send(topic, record.value, key=record.key, headers=record.headers)


def test_ids_count_up_by_partition_in_the_order_of_sending(running: RunningBroker) -> None:
    running.create_topic("counted", partitions=2)
    with producer(running) as writer:
        for number in range(200):
            writer.send("counted", b"%d" % number, partition=number % 2, headers=[("a", b"b")])
        writer.flush()
        figures = writer.metrics()
    assert figures["audit-id-total"] == figures["audit-acknowledged-total"] == 200
    records = records_of(running, "counted", 200)
    for partition in range(2):
        own = [record for record in records if record.partition == partition]
        found = ids_of(own)
        assert [each.number for each in found] == list(range(100))
        assert {each.partition for each in found} == {partition}
        assert [each.time_ms for each in found] == [record.timestamp for record in own]
        assert all(record.headers[0] == ("a", b"b") for record in own)
    assert len({each.process for each in ids_of(records)}) == 1


def test_without_the_switch_no_record_has_an_id(running: RunningBroker) -> None:
    running.create_topic("plain", partitions=2)
    with Producer(bootstrap_servers=running.bootstrap) as writer:
        writer.send("plain", b"x")
    assert records_of(running, "plain", 1)[0].headers == ()
    told = ids(running, "plain")
    assert told.exit_code == 0
    assert "0 ids of 0 streams, 1 record without an id" in told.stdout


@run_async
async def test_the_asynchronous_producer_gives_ids_too(running: RunningBroker) -> None:
    running.create_topic("looped", partitions=2)
    async with AsyncProducer(bootstrap_servers=running.bootstrap, audit_ids_enable=True) as writer:
        for _ in range(50):
            await writer.send("looped", b"x", partition=1)
    assert [each.number for each in ids_of(records_of(running, "looped", 50))] == list(range(50))


def test_planted_loss_and_doubles_of_a_copy_are_told_exactly(running: RunningBroker) -> None:
    for topic in ("orders", "orders-copy"):
        running.create_topic(topic, partitions=2)
    with producer(running, compression_type="lz4") as writer:
        for number in range(600):
            writer.send("orders", b"v", key=b"%d" % number, partition=number % 2)
    sound = ids(running, "orders")
    assert sound.exit_code == 0, sound.stdout
    assert "600 ids of 2 streams, 0 records without an id" in sound.stdout

    records = records_of(running, "orders", 600)
    process = ids_of(records)[0].process
    copy(running, "orders-copy", records, lambda number: {7: 0, 8: 0, 20: 2, 21: 3}.get(number, 1))
    told = ids(running, "orders", "--against", "orders-copy")
    assert told.exit_code == 3
    for line in (
        "  in orders and not here: 4",
        f"    {process:016x}/0#7-8",
        f"    {process:016x}/1#7-8",
        "  came more than once: 4",
        f"    {process:016x}/1#20-21",
        "4 ids are in orders and not in orders-copy.",
        "4 ids came more than once in orders-copy.",
    ):
        assert line in told.lines
    found = document(running, "orders", "--against", "orders-copy")
    assert found["alarms"][-1] == "4 ids are in orders and not in orders-copy."
    assert found["missing"] == [] and found["against"]["missing_count"] == 4
    alone = document(running, "orders-copy", "--from-beginning")
    assert [(each["partition"], each["first"], each["last"]) for each in alone["missing"]] == [
        (0, 7, 8),
        (1, 7, 8),
    ]


def test_what_is_young_may_still_come(running: RunningBroker) -> None:
    for topic in ("young", "young-copy"):
        running.create_topic(topic, partitions=2)
    with producer(running) as writer:
        writer.send("young", b"v", partition=0)
    asked = ("audit", "ids", "young", "--against", "young-copy", "--grace", "1h")
    told = run_command(*asked, "-b", running.bootstrap)
    assert told.exit_code == 0, told.stdout
    assert "  in young and not here: 0, and 1 that may still come" in told.lines


def test_what_was_never_written_is_missing_from_the_beginning(running: RunningBroker) -> None:
    running.create_topic("headless", partitions=2)
    headers = [("headwater-audit", AuditId(5, 0, 3, 0).encode())]
    with Producer(bootstrap_servers=running.bootstrap) as writer:
        writer.send("headless", b"v", partition=0, headers=headers)
    assert document(running, "headless")["missing"] == [], "what came before it is not known"
    whole = document(running, "headless", "--from-beginning")
    assert [(each["first"], each["last"]) for each in whole["missing"]] == [(0, 2)]


def test_aborted_ids_are_told_apart_and_are_no_alarm(running: RunningBroker) -> None:
    running.create_topic("deals", partitions=2)
    with producer(running, transactional_id="dealer") as writer:
        writer.init_transactions()
        for number in range(3):
            writer.begin_transaction()
            writer.send("deals", b"v", partition=0).result(30)
            if number == 1:
                writer.abort_transaction()
            else:
                writer.commit_transaction()
    told = ids(running, "deals")
    assert told.exit_code == 0, told.stdout
    assert "  sent in transactions that were aborted: 1" in told.lines
    assert "2 ids of 1 stream" in told.stdout


def test_a_record_that_was_given_up_leaves_a_gap_that_the_producer_counts(
    running: RunningBroker,
) -> None:
    running.create_topic("small", partitions=2, configs={"max.message.bytes": "2000"})
    with producer(running) as writer:
        writer.send("small", b"v", partition=0).result(30)
        refused = writer.send("small", bytes(5000), partition=0)
        assert refused.exception(30) is not None
        writer.send("small", b"v", partition=0).result(30)
        assert writer.metrics()["audit-given-up-total"] == 1
    told = document(running, "small")
    assert [(each["first"], each["last"]) for each in told["missing"]] == [(1, 1)]


@pytest.mark.parametrize(
    "headers", [None, [{"key": "a", "value": b"b"}], [{"key": "a", "value": b"b"}] * 70]
)
def test_rows_of_arrow_get_ids_too(running: RunningBroker, headers: Any) -> None:
    arrow = pytest.importorskip("pyarrow")
    topic = f"rows-with-{len(headers or ())}-headers"
    running.create_topic(topic, partitions=2)
    columns: dict[str, Any] = {
        "key": [b"%d" % number for number in range(500)],
        "value": [b"v"] * 500,
    }
    if headers is not None:
        columns["headers"] = [headers] * 500
    with producer(running) as writer:
        writer.send_arrow(topic, arrow.table(columns)).result(30)
        writer.send(topic, b"v", partition=0)
    records = records_of(running, topic, 501)
    for partition in range(2):
        own = [record for record in records if record.partition == partition]
        assert [each.number for each in ids_of(own)] == list(range(len(own)))
        for record in own[:-1]:
            assert len(record.headers) == len(headers or ()) + 1
            assert record.headers[-1][0] == "headwater-audit"
    with producer(running) as writer:
        again = [{"key": "headwater-audit", "value": AuditId(1, 0, 0, 0).encode()}]
        rows = {"value": [b"v"] * 2, "headers": [again, [{"key": "a", "value": None}]]}
        writer.send_arrow(topic, arrow.table(rows), partition=1).result(30)
    added = [each for each in records_of(running, topic, 503) if each.key is None]
    assert AuditId(1, 0, 0, 0) in ids_of(added), "a copy keeps its id"
    assert len(ids_of(added)) == len(added) == 3
    assert ids(running, topic, "--from-beginning").exit_code == 0


def test_an_archive_is_compared_with_its_topic(running: RunningBroker, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from headwater.pipeline.lake.lake_table import LakeTable
    from tests.support.spark.lakes import archive, record

    running.create_topic("archived", partitions=2)
    with producer(running) as writer:
        for _ in range(10):
            writer.send("archived", b"v", partition=0)
    found = ids_of(records_of(running, "archived", 10))
    rows = []
    for offset, audit_id in enumerate(found):
        headers = [{"key": "headwater-audit", "value": audit_id.encode()}]
        rows.append({**record(0, offset, topic="archived"), "headers": headers})
    del rows[4]
    rows.append({**rows[2], "offset": 10})
    other = {**record(0, 0, topic="other"), "headers": rows[0]["headers"]}
    path = tmp_path / "lake"
    ends = {("archived", 0): 11, ("other", 0): 1}
    archive(LakeTable(path), [*rows, other], before=None, after=ends, batch_id=0)
    told = document(running, "archived", "--lake", path)
    against = told["against"]
    assert [(each["first"], each["last"]) for each in against["missing"]] == [(4, 4)]
    assert [(each["first"], each["last"]) for each in against["doubled"]] == [(2, 2)]
    assert against["id_count"] == 9
    assert ids(running, "archived", "--lake", path).exit_code == 3


def test_what_cannot_be_asked_is_said_in_a_sentence(running: RunningBroker, tmp_path: Path) -> None:
    missing = ids(running, "nowhere")
    assert (missing.exit_code, missing.stderr.count("\n")) == (1, 1)
    assert ids(running, "orders", "--last", "1h", "--from-beginning").exit_code == 2
    assert ids(running, "orders", "--against", "a", "--lake", "b").exit_code == 2
    running.create_topic("lakeless", partitions=2)
    lake = ids(running, "lakeless", "--lake", tmp_path)
    assert lake.exit_code == 1
    assert "There is no lake table at" in lake.stderr


@pytest.mark.parametrize("by_columns", [False, True])
def test_a_batch_that_is_split_keeps_its_numbers(running: RunningBroker, by_columns: bool) -> None:
    topic = f"split-{by_columns}"
    running.create_topic(topic, partitions=2, configs={"max.message.bytes": "2000"})
    with producer(running, linger_ms=1000) as writer:
        if by_columns:
            arrow = pytest.importorskip("pyarrow")
            writer.send_arrow(topic, arrow.table({"value": [b"v" * 100] * 90}), partition=0)
        else:
            for _ in range(90):
                writer.send(topic, b"v" * 100, partition=0)
        writer.flush()
        figures = writer.metrics()
        assert figures["batch-split-total"] > 0
        assert figures["audit-acknowledged-total"] == 90
    assert [each.number for each in ids_of(records_of(running, topic, 90))] == list(range(90))


def test_records_get_their_numbers_when_they_leave_a_spool(
    running: RunningBroker, tmp_path: Path
) -> None:
    running.create_topic("spooled", partitions=2)
    with producer(running, spool_dir=tmp_path / "spool") as writer:
        for _ in range(20):
            writer.send("spooled", b"v", partition=1)
        writer.flush(30)
    assert [each.number for each in ids_of(records_of(running, "spooled", 20))] == list(range(20))
