"""A broker that is killed, or stopped, under load comes back with all that it acknowledged."""

from __future__ import annotations

import random
from contextlib import ExitStack
from pathlib import Path

import pytest

from headwater.testing.broker_process import BrokerProcess, wait_until
from tests.support.other_clients.confluent import ConfluentClient
from tests.support.other_clients.load import SteadyProducer
from tests.support.tiers import rounds

TOPIC = "kept"
PARTITIONS = 3
#: Small, so that a crash meets indexes, rolls and snapshots at work, not only the last segment.
SETTINGS = {"log.segment.bytes": "1048576", "log.index.interval.bytes": "512"}


def start_producers(
    stack: ExitStack, broker: BrokerProcess, **settings: object
) -> list[SteadyProducer]:
    ConfluentClient(broker.bootstrap).create_topic(TOPIC, PARTITIONS)
    return [
        stack.enter_context(
            SteadyProducer(broker.bootstrap, TOPIC, number, f"p{number}", acks="all", **settings)
        )
        for number in range(PARTITIONS)
    ]


def end_in_turn(
    broker: BrokerProcess, producers: list[SteadyProducer], seed: int, count: int, *, kill: bool
) -> None:
    """Let the producers get somewhere, end the broker somewhere in the middle, start it again."""
    chance = random.Random(seed)
    for _ in range(count):
        before = [len(each.acknowledged) for each in producers]
        progress = chance.randrange(50, 1_500)
        wait_until(
            lambda before=before, progress=progress: all(  # type: ignore[misc]
                len(each.acknowledged) >= done + progress
                for each, done in zip(producers, before, strict=True)
            ),
            "the producers get on",
        )
        if kill:
            broker.kill()
            broker.start()
        else:
            broker.restart()


@pytest.mark.parametrize("seed", range(rounds(1, 3)))
@pytest.mark.parametrize("end", ["killed", "stopped"])
def test_an_idempotent_producers_records_are_there_exactly_once(
    end: str, seed: int, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        broker = stack.enter_context(BrokerProcess(tmp_path, settings=SETTINGS))
        with ExitStack() as load:
            producers = start_producers(load, broker, enable_idempotence=True)
            end_in_turn(broker, producers, seed, rounds(2, 5), kill=end == "killed")
        for producer in producers:
            assert producer.errors == []
            assert len(producer.acknowledged) == producer.sent_count
            found = ConfluentClient(broker.bootstrap).consume(TOPIC, 0, producer.partition)
            expected = [producer.value(number) for number in range(producer.sent_count)]
            assert [record.value for record in found] == expected
            assert [record.offset for record in found] == list(range(len(expected)))


@pytest.mark.parametrize("seed", range(rounds(1, 3)))
def test_every_acknowledged_record_is_where_it_was_acknowledged(seed: int, tmp_path: Path) -> None:
    """Without idempotence some records are there twice, but none is missing."""
    with ExitStack() as stack:
        broker = stack.enter_context(BrokerProcess(tmp_path, settings=SETTINGS))
        with ExitStack() as load:
            producers = start_producers(load, broker, enable_idempotence=False)
            end_in_turn(broker, producers, 100 + seed, rounds(2, 5), kill=True)
        broker.kill()
        broker.start()
        for producer in producers:
            found = ConfluentClient(broker.bootstrap).consume(TOPIC, 0, producer.partition)
            by_offset = {record.offset: record.value for record in found}
            assert sorted(by_offset) == list(range(len(found)))
            assert producer.acknowledged
            for number, offset in producer.acknowledged.items():
                assert by_offset[offset] == producer.value(number), (number, offset)


def test_topics_and_settings_survive_a_kill(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        client = ConfluentClient(broker.bootstrap)
        [broker_id] = client.broker_ids()
        for number in range(5):
            client.create_topic(f"made-{number}", number + 1, settings={"retention.ms": "777777"})
        client.delete_topic("made-0")
        client.grow_topic("made-1", 7)
        client.alter_topic("made-2", {"max.message.bytes": "4321"})
        client.alter_broker(broker_id, {"log.retention.ms": "99999999"})
        broker.kill()
        broker.start()
        counts = {f"made-{number}": number + 1 for number in range(2, 5)} | {"made-1": 7}
        assert client.partition_counts() == counts
        settings = client.topic_settings("made-2")
        assert settings["max.message.bytes"].value == "4321"
        assert settings["retention.ms"].value == "777777"
        assert client.broker_settings(broker_id)["log.retention.ms"].value == "99999999"
        # And it is the same cluster for clients that remember it.
        assert client.broker_ids() == [broker_id]


def test_deleted_records_stay_deleted_over_a_restart(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, settings=SETTINGS) as broker:
        client = ConfluentClient(broker.bootstrap)
        with SteadyProducer(broker.bootstrap, "shrinks", 0, "p") as producer:
            wait_until(lambda: len(producer.acknowledged) > 500, "there is something")
        assert client.delete_records("shrinks", 300) == 300
        broker.restart()
        assert client.end_offsets("shrinks") == (300, producer.sent_count)
        assert client.consume("shrinks", "earliest")[0].offset == 300
