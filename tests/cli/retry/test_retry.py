"""`headwater retry`, on a broker."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from headwater import Admin, Consumer, KafkaError, Producer, TopicPartition
from headwater.client.admin.configs import ConfigResource, ResourceType
from headwater.testing import broker
from headwater.testing.running_broker import RunningBroker
from tests.support.command import Finished, run_command
from tests.support.waiting import eventually


@pytest.fixture
def running() -> Iterator[RunningBroker]:
    with broker() as started:
        started.create_topic("orders", partitions=2)
        started.create_topic("refunds")
        yield started


def retry(running: RunningBroker, *arguments: object) -> Finished:
    return run_command("retry", *arguments, "-b", running.bootstrap)


def listed(running: RunningBroker) -> list[dict[str, object]]:
    return [json.loads(line) for line in retry(running, "list", "--json").lines]


def test_a_group_gets_its_topics_and_another_policy_later(running: RunningBroker) -> None:
    made = retry(running, "enable", "billing", "--topics", "refunds,orders")
    assert (made.exit_code, made.stderr) == (0, "")
    assert made.lines[:2] == [
        "Created dlq.billing with 2 partitions.",
        "Created retry.billing with 2 partitions.",
    ]
    (row,) = listed(running)
    assert row == {
        "group": "billing",
        "retry_topic": "retry.billing",
        "delays": "5s,10s,30s,1m,2m",
        "attempts": 5,
        "dead_letter_topic": "dlq.billing",
        "waiting": 0,
    }
    again = retry(running, "enable", "billing", "--topics", "orders", "--delays", "1s,2s")
    assert again.lines[:2] == [
        "dlq.billing was there: its settings are changed.",
        "retry.billing was there: its settings are changed.",
    ]
    (row,) = listed(running)
    assert (row["delays"], row["attempts"]) == ("1s,2s", 2)


def retention_ms(running: RunningBroker, topic: str) -> str | None:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    with Admin(bootstrap_servers=running.bootstrap) as admin:
        entries = admin.describe_configs([resource], names=["retention.ms"])[resource]
    assert not isinstance(entries, KafkaError)
    return entries[0].value


def test_dead_letters_are_kept_until_somebody_wants_otherwise(running: RunningBroker) -> None:
    enable = ("enable", "billing", "--topics", "refunds")
    assert retry(running, *enable).exit_code == 0
    assert retention_ms(running, "dlq.billing") == "-1"
    assert retry(running, *enable, "--dead-letter-retention", "30d").exit_code == 0
    assert retention_ms(running, "dlq.billing") == str(30 * 86_400_000)
    # What somebody has chosen is not changed back.
    assert retry(running, *enable, "--delays", "1s").exit_code == 0
    assert retention_ms(running, "dlq.billing") == str(30 * 86_400_000)
    told = retry(running, *enable, "--dead-letter-retention", "long")
    assert told.exit_code != 0
    assert "is no length of time" in told.stderr


def test_what_is_given_up_gets_to_the_topic_of_choice(running: RunningBroker) -> None:
    made = retry(
        running, "enable", "g", "--topics", "refunds", "--dead-letter-topic", "dlq.everybody"
    )
    assert made.exit_code == 0
    with Producer(bootstrap_servers=running.bootstrap) as producer:
        producer.send("retry.g", b"v", headers=[("headwater-dead", b"no")]).result()
        producer.send("retry.g", b"w").result()
    with Consumer(bootstrap_servers=running.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition("dlq.everybody", 0)])
        (letter,) = eventually(lambda: list(consumer.poll(timeout_s=1)))
    assert letter.value == b"v"
    assert eventually(lambda: listed(running)[0]["waiting"] == 1)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--topics", "ordrs"), "There is no topic 'ordrs'; did you mean 'orders'?"),
        (("--topics", ","), "Name the topics that the group reads"),
        (("--topics", "orders", "--delays", "soon"), "is no length of time"),
        (("--topics", "orders", "--delays", ""), "needs at least one delay"),
        (("--topics", "orders", "--max-delay", "1m"), "is longer than max_delay"),
    ],
)
def test_what_cannot_be_is_told(
    running: RunningBroker, arguments: tuple[str, ...], sentence: str
) -> None:
    told = retry(running, "enable", "billing", *arguments)
    assert told.exit_code != 0
    assert sentence in told.stderr
    assert listed(running) == []


def test_a_group_can_have_a_queue_for_each_delay(running: RunningBroker) -> None:
    made = retry(
        *(running, "enable", "billing", "--topics", "orders", "--queues"),
        *("--delays", "5s,10s,10s"),
    )
    assert (made.exit_code, made.stderr) == (0, "")
    assert made.lines[:3] == [
        "Created dlq.billing with 2 partitions.",
        "Created retry.billing.5s with 2 partitions.",
        "Created retry.billing.10s with 2 partitions.",
    ]
    assert {(row["group"], row["retry_topic"], row["attempts"]) for row in listed(running)} == {
        ("billing", "retry.billing.5s", 3),
        ("billing", "retry.billing.10s", 3),
    }
    # Another policy leaves a queue behind, which has the new policy like the others.
    again = retry(
        *(running, "enable", "billing", "--topics", "orders", "--queues", "--delays", "5s,1m")
    )
    assert (
        "No record goes to retry.billing.10s any more: delete it when nothing waits there."
        in again.lines
    )
    assert {row["delays"] for row in listed(running)} == {"5s,1m"}
    single = retry(running, "enable", "billing", "--topics", "orders")
    assert "billing has queues too, which workers prefer" in single.lines[-1]
