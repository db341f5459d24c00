"""`headwater trace` on a broker that publishes every second, for clients that help with nothing."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

import headwater
from headwater.testing import broker
from headwater.testing.running_broker import RunningBroker
from tests.support.command import Finished, run_command
from tests.support.waiting import eventually

RETRY = {
    "delay.mode": "retry",
    "retry.delays": "200ms,300ms",
    "retry.dead.letter.topic": "dlq.billing",
}
LETTERS = {"errors.deadletterqueue.group.enable": "true"}


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    settings = {"audit.bucket.ms": "1000", "offsets.topic.num.partitions": "1"}
    with broker(settings=settings) as started:
        started.create_topic("orders")
        started.create_topic("mails", configs={"delay.mode": "header"})
        started.create_topic("dlq.billing", configs=LETTERS)
        started.create_topic("retry.billing", configs=RETRY)
        audited = started._serving().context.partitions
        # What comes before the leader has looked at its partitions came at an unknown time.
        eventually(
            lambda: all(
                each.client_ids is not None
                for each in audited
                if not each.topic_partition.topic.startswith("__")
            )
        )
        yield started


def trace(running: RunningBroker, *arguments: object) -> Finished:
    return run_command("trace", *arguments, "-b", running.bootstrap)


def story(running: RunningBroker, *arguments: object) -> dict[str, Any]:
    finished = trace(running, *arguments, "--json")
    assert finished.exit_code == 0, finished.stderr
    found: dict[str, Any] = json.loads(finished.stdout)["messages"][-1]
    return found


def events(found: dict[str, Any]) -> list[tuple[str, str | None]]:
    return [(each["event"], each["group"]) for each in found["events"]]


def produce(running: RunningBroker, topic: str, value: bytes, **config: Any) -> str:
    """The id of a record that confluent-kafka wrote."""
    places: list[str] = []
    producer = Producer({"bootstrap.servers": running.bootstrap, "enable.idempotence": True})
    producer.produce(
        topic,
        value,
        on_delivery=lambda _, told: places.append(f"{topic}-{told.partition()}@{told.offset()}"),
        **config,
    )
    producer.flush()
    return places[0]


def consumer(running: RunningBroker, group: str, *topics: str) -> Consumer:
    made = Consumer(
        {
            "bootstrap.servers": running.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    made.subscribe(list(topics))
    return made


def commit_up_to(running: RunningBroker, group: str, value: bytes) -> None:
    """The group reads up to a record, and commits it."""
    reading = consumer(running, group, "orders")
    while (record := reading.poll(1.0)) is None or record.error() or record.value() != value:
        pass
    reading.commit(message=record, asynchronous=False)
    reading.close()


def test_all_that_can_be_told_of_a_record_of_a_stock_client(running: RunningBroker) -> None:
    began_ms = time.time_ns() // 1_000_000
    place = produce(running, "orders", b"two groups", key=b"customer-7")
    commit_up_to(running, "audits", b"two groups")
    commit_up_to(running, "reports", b"two groups")
    early = trace(running, place)
    assert early.exit_code == 0, early.stderr

    eventually(lambda: len(story(running, place)["events"]) == 5)
    found = story(running, place)
    assert [event for event, _ in events(found)][:3] == ["created", "appended", "replicated"]
    assert events(found)[3:] == [("passed", "audits"), ("passed", "reports")]
    ended_ms = time.time_ns() // 1_000_000
    for event in found["events"]:
        assert event["within_ms"] is not None
        assert event["within_ms"] < 10_000
        assert began_ms <= event["time_ms"]
        assert event["time_ms"] - event["within_ms"] <= ended_ms
    created, appended, _, passed, _ = found["events"]
    assert (created["source"], created["within_ms"]) == ("record", 0)
    assert (appended["source"], appended["clock"]) == ("audit", appended["host"])
    assert appended["details"]["sequence"] == 0
    assert (passed["within_ms"], passed["source"]) == (0, "audit"), "a group's only commit is exact"
    assert [wait["wait"] for wait in found["waits"]] == ["sending", "replication", "lag", "lag"]
    assert found["notes"] == [] and found["clocks"] == []

    table = trace(running, place)
    assert "audits has committed past it" in table.stdout
    assert "of lag in reports" in table.stdout
    by_key = story(running, "--key", "customer-7", "--topic", "orders")
    assert by_key["id"] == place
    slow = json.loads(trace(running, "slow", "orders", "--step", "lag", "--json").stdout)
    assert {(each["id"], each["group"]) for each in slow["messages"]} >= {
        (place, "audits"),
        (place, "reports"),
    }
    replication = trace(running, "slow", "orders", "--step", "replication")
    assert place in replication.stdout
    assert "Nobody told how long" in trace(running, "slow", "orders", "--step", "handling").stderr


def test_a_delayed_message_before_and_after_it_is_delivered(running: RunningBroker) -> None:
    place = produce(running, "mails", b"x", headers=[("headwater-delay", b"1500ms")])
    waiting = story(running, place)
    assert waiting["waiting_until_ms"] is not None
    assert waiting["notes"][0].startswith("It waits until ")
    topic, _, _ = place.rpartition("@")

    def is_told() -> bool:
        found = story(running, place)
        names = [event for event, _ in events(found)]
        return names == ["created", "appended", "replicated", "delivered"]

    eventually(is_told)
    found = story(running, place)
    (copied,) = found["stations"]
    assert (copied["waited_at"], found["id"]) == (place, place)
    assert [each["id"] for each in found["events"]] == [place] * 3 + [copied["id"]]
    (delay,) = [wait for wait in found["waits"] if wait["wait"] == "delay"]
    assert (delay["duration_ms"], delay["text"]) == (1500, "waited 1.5 s as asked (delay)")
    assert story(running, f"{topic}@{copied['id'].partition('@')[2]}")["id"] == place


def test_three_attempts_and_a_dead_letter_by_any_of_their_names(running: RunningBroker) -> None:
    place = produce(running, "orders", b"bad")
    reading = consumer(running, "billing", "orders", "retry.billing")
    failures = 0
    while failures < 3:
        record = reading.poll(1.0)
        if record is None or record.error():
            continue
        if record.value() == b"bad":
            failures += 1
            headers = [each for each in record.headers() or [] if each[0] != "headwater-error"]
            if "headwater-origin" not in [each[0] for each in headers]:
                headers.append(("headwater-origin", place.encode()))
            headers.append(("headwater-error", b"no such currency"))
            produce(running, "retry.billing", b"bad", headers=headers)
        reading.commit(message=record, asynchronous=False)
    reading.close()
    expected = [
        *("created", "appended", "replicated", "sent_on", "passed", "delivered", "sent_on"),
        *("passed", "delivered", "sent_on", "passed", "dead_letter"),
    ]

    def is_told() -> bool:
        return sorted(event for event, _ in events(story(running, place))) == sorted(expected)

    eventually(is_told)
    found = story(running, place)
    kinds = [each["kind"] for each in found["stations"]]
    assert kinds == ["original", "retry", "retry", "dead_letter"]
    told = [each for each in found["events"] if each["event"] in ("sent_on", "delivered")]
    assert [(each["event"], each["attempt"]) for each in told] == [
        ("sent_on", 1),
        ("delivered", 1),
        ("sent_on", 2),
        ("delivered", 2),
        ("sent_on", 3),
    ]
    retries = [wait["text"] for wait in found["waits"] if wait["wait"] == "retry"]
    assert retries == ["retry 1 after 200 ms", "retry 2 after 300 ms"]
    assert {each["error"] for each in told if each["event"] == "sent_on"} == {"no such currency"}
    for name in (found["stations"][1]["waited_at"], found["stations"][3]["id"]):
        assert story(running, name)["id"] == place


def test_the_end_of_a_transaction_and_the_marker_itself(running: RunningBroker) -> None:
    producer = Producer({"bootstrap.servers": running.bootstrap, "transactional.id": "t"})
    producer.init_transactions()
    places: list[int] = []

    def write() -> None:
        producer.produce(
            "orders", b"t", on_delivery=lambda _, told: places.append(int(told.offset() or 0))
        )
        producer.flush()

    for end in (producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        write()
        still_open = story(running, f"orders-0@{places[-1]}")
        assert "still open" in still_open["notes"][0]
        end()
    aborted, committed = (story(running, f"orders-0@{offset}") for offset in places)
    assert "transaction_aborted" in [event for event, _ in events(aborted)]
    assert "was aborted" in aborted["notes"][0]
    assert "transaction_committed" in [event for event, _ in events(committed)]
    marker = trace(running, f"orders-0@{places[0] + 1}")
    assert (marker.exit_code, marker.stdout) == (1, "")
    assert "the marker that ends a transaction" in marker.stderr


@pytest.mark.parametrize(
    ("arguments", "exit_code", "sentence"),
    [
        (("orders-0@99999",), 1, "orders-0@99999 is not there: the next record of orders-0"),
        (("ordrs-0@1",), 1, "There is no topic 'ordrs'; did you mean 'orders'?"),
        (("orders-5@1",), 1, "Topic 'orders' has no partition 5"),
        (("slow", "ordrs"), 1, "There is no topic 'ordrs'; did you mean 'orders'?"),
        (("--trace-id", "a" * 32), 1, "Nothing is written of the trace"),
        (("--trace-id", "abc"), 2, "'abc' is no id of a trace"),
        (("orders",), 2, "'orders' is not the id of a message"),
        (("--key", "x"), 2, "they go together"),
        (("orders-0@1", "--key", "x", "--topic", "orders"), 2, "in one of the three ways"),
    ],
)
def test_what_is_not_there_is_said_in_a_sentence(
    running: RunningBroker, arguments: tuple[str, ...], exit_code: int, sentence: str
) -> None:
    finished = trace(running, *arguments)
    assert finished.exit_code == exit_code
    assert sentence in finished.stderr
    assert "Traceback" not in finished.stderr


def test_a_deleted_record_is_said_to_be(running: RunningBroker) -> None:
    running.create_topic("short")
    place = produce(running, "short", b"x")
    deleted = run_command(
        *("delete-records", "short", "--partition", 0, "--offset", 1, "-b", running.bootstrap)
    )
    assert deleted.exit_code == 0
    finished = trace(running, place)
    assert "was deleted: short-0 begins at offset 1." in finished.stderr


def test_nothing_with_a_key_is_no_failure(running: RunningBroker) -> None:
    finished = trace(running, "--key", "nobody", "--topic", "orders")
    assert (finished.exit_code, finished.stdout) == (0, "")
    assert "No record of orders-0" in finished.stderr


def test_steps_that_clients_wrote_are_in_the_same_story(running: RunningBroker) -> None:
    running.create_topic("traced")
    config: dict[str, object] = {"bootstrap.servers": running.bootstrap, "trace.enable": True}
    with headwater.Producer({**config, "client.id": "shop", "trace.sample": 1.0}) as producer:
        place = str(producer.send("traced", b"x", b"k").result(20).message_id)
        producer.send("traced", b"another", b"k").result(20)
    group = {"group.id": "tracers", "auto.offset.reset": "earliest", "client.id": "worker"}
    with headwater.Consumer({**config, **group}) as reading:
        reading.subscribe(["traced"])
        while not reading.poll(1.0):
            pass
        reading.commit()
    written = ["created", "sent", "acknowledged", "fetched", "committed"]

    def told() -> list[str]:
        found = story(running, place)["events"]
        return [each["event"] for each in found if each["source"] == "written"]

    eventually(lambda: told() == written)
    found = story(running, place)
    assert {each["client_id"] for each in found["events"] if each["source"] == "written"} == {
        "shop",
        "worker",
    }
    assert [event for event, _ in events(found)].count("created") == 1
    (trace_id,) = found["trace_ids"]
    by_trace = json.loads(trace(running, "--trace-id", trace_id, "--json").stdout)["messages"]
    assert [each["id"] for each in by_trace] == [place]
    slow = json.loads(trace(running, "slow", "traced", "--step", "lag", "--json").stdout)
    assert {each["source"] for each in slow["messages"]} == {"written"}
    assert place in {each["id"] for each in slow["messages"]}
