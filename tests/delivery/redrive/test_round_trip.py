"""The whole way: a record fails, is given up, is sent back, comes to its group, and fails again."""

from __future__ import annotations

from headwater import Consumer, Producer, TopicPartition
from headwater.client.consumer.record import ConsumerRecord
from headwater.delivery import LetterFilter, RedrivePlan, Redrives, RetryPolicy, To
from headwater.testing import broker
from headwater.testing.running_broker import RunningBroker
from tests.support.waiting import eventually

ALLOWED = {"errors.deadletterqueue.group.enable": "true"}
POLICY = {
    "delay.mode": "retry",
    "retry.delays": "1h",
    "retry.dead.letter.topic": "dlq.billing",
}
ORIGIN = ("headwater-origin", b"orders-0@7")


def read(running: RunningBroker, topic: str, count: int) -> list[ConsumerRecord]:
    """So many records, once they are there."""
    with Consumer(
        bootstrap_servers=running.bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        records: list[ConsumerRecord] = []

        def enough() -> bool:
            records.extend(consumer.poll(timeout_s=0.1))
            return len(records) >= count

        eventually(enough)
    assert len(records) == count
    return records


def test_a_letter_goes_round_until_it_has_gone_round_too_often() -> None:
    with broker() as running:
        running.create_topic("orders")
        running.create_topic("dlq.billing", configs=ALLOWED)
        running.create_topic("retry.billing", configs=POLICY)
        redrives = Redrives(bootstrap_servers=running.bootstrap)
        plan = RedrivePlan(source="dlq.billing", to=To.RETRY, max_redrives=1)
        with Producer(bootstrap_servers=running.bootstrap) as producer:
            dead = [ORIGIN, ("headwater-attempts", b"9"), ("headwater-dead", b"no")]
            producer.send("retry.billing", b"v", b"k", headers=dead).result()
            (letter,) = read(running, "dlq.billing", 1)
            assert redrives.run(plan).progress.counts.sent == 1

            # At once, though the policy says an hour, and with all of its attempts before it.
            (back,) = read(running, "retry.billing", 1)
            headers = dict(back.headers)
            assert (back.key, back.value, headers["headwater-attempts"]) == (b"k", b"v", b"1")
            assert (headers["headwater-origin"], headers["headwater-redrives"]) == (ORIGIN[1], b"1")
            assert "headwater-dead" not in headers

            failed = [*back.headers, ("headwater-dead", b"still not")]
            producer.send("retry.billing", back.value, back.key, headers=failed).result()
        _, again = read(running, "dlq.billing", 2)
        assert again.offset > letter.offset
        # The letter is another one, the message is the same, and it is not sent round for ever.
        counts = redrives.run(plan).progress.counts
        assert (counts.already, counts.loops, counts.sent) == (1, 1, 0)
        found = redrives.letters("dlq.billing", LetterFilter(origin="orders-0@7"))
        assert [each.redrives for each in found] == [0, 1]


def test_a_group_with_a_queue_for_each_delay_gets_its_letters_in_the_first() -> None:
    policy = RetryPolicy(["100ms", "1h"], queues=True)
    with broker() as running:
        running.create_topic("dlq.billing", configs=ALLOWED)
        configs = policy.topic_configs("billing")
        for name in policy.topic_names("billing"):
            running.create_topic(name, configs=configs)
        # The retry topic of another group, which is called as a queue of this one would be.
        running.create_topic("retry.billing.7s", configs=configs | {"retry.group": "billing.7s"})
        redrives = Redrives(bootstrap_servers=running.bootstrap)
        with Producer(bootstrap_servers=running.bootstrap) as producer:
            dead = [ORIGIN, ("headwater-attempts", b"2")]
            producer.send("retry.billing.1h", b"v", b"k", headers=dead).result()
            read(running, "dlq.billing", 1)
        plan = RedrivePlan(source="dlq.billing", to=To.RETRY)
        assert dict(redrives.preview(plan).by_target) == {"retry.billing.100ms": 1}
        assert redrives.run(plan).progress.counts.sent == 1
        (back,) = read(running, "retry.billing.100ms", 1)
        assert (back.value, dict(back.headers)["headwater-attempts"]) == (b"v", b"1")
