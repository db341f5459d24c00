"""`headwater delay`, on a broker with a stand-in for what delays messages."""

import json
from collections.abc import Iterator

import pytest

from tests.support.brokers.delaying_broker import DelayingBroker, delaying_broker, refill
from tests.support.command import Finished, run_command


@pytest.fixture(scope="module")
def started() -> Iterator[DelayingBroker]:
    with delaying_broker() as running:
        yield running


@pytest.fixture
def running(started: DelayingBroker) -> DelayingBroker:
    refill(started.delays)
    return started


def delay(running: DelayingBroker, *arguments: object) -> Finished:
    return run_command("delay", *arguments, "-b", running.bootstrap)


def ids(finished: Finished) -> list[str]:
    assert (finished.exit_code, finished.stderr) == (0, "")
    return [line.split()[0] for line in finished.lines[1:]]


def test_what_waits_is_listed(running: DelayingBroker) -> None:
    listed = delay(running, "list", "orders")
    assert ids(listed) == ["orders-0@4", "orders-1@0", "orders-0@3"]
    assert listed.lines[0].split("  ")[0] == "ID"
    assert listed.lines[3].split() == [
        "orders-0@3", "1970-01-01T00:00:03.000Z", "1970-01-01T00:00:00.500Z", "mine", "k", "10"
    ]  # fmt: skip
    assert ids(delay(running, "list", "--topic", "orders", "--partition", 1)) == ["orders-1@0"]
    late = delay(running, "list", "orders", "--from", "1970-01-01T00:00:02.500Z")
    assert ids(late) == ["orders-1@0", "orders-0@3"]
    assert ids(delay(running, "list", "orders", "--to", "2499")) == ["orders-0@4"]
    cut = delay(running, "list", "orders", "--limit", 1)
    assert (cut.exit_code, len(cut.lines)) == (0, 2)
    assert cut.stderr == "headwater: There are more: see --limit, --from and --to.\n"


def test_a_list_for_programs(running: DelayingBroker) -> None:
    listed = delay(running, "list", "orders", "--json")
    assert json.loads(listed.lines[2]) == {
        "id": "orders-0@3",
        "topic": "orders",
        "partition": 0,
        "offset": 3,
        "due_ms": 3000,
        "sent_ms": 500,
        "expires_ms": None,
        "sender_id": "mine",
        "key": "k",
        "size_bytes": 10,
    }
    assert [json.loads(line)["id"] for line in listed.lines[:2]] == ["orders-0@4", "orders-1@0"]


def test_messages_are_shown(running: DelayingBroker) -> None:
    assert ids(delay(running, "show", "orders-0@3")) == ["orders-0@3"]
    assert ids(delay(running, "show", "--sender-id", "mine", "--topic", "orders")) == [
        "orders-0@3",
        "orders-1@0",
    ]
    partly = delay(running, "show", "orders-0@3", "orders-0@99")
    assert (partly.exit_code, len(partly.lines)) == (1, 2)
    assert partly.stderr == (
        "headwater: No message waits as orders-0@99: it was delivered, cancelled or never there.\n"
    )


def test_messages_are_cancelled(running: DelayingBroker) -> None:
    done = delay(running, "cancel", "orders-0@4", "orders-0@99", "orders-1@0")
    assert (done.exit_code, done.lines) == (1, ["Cancelled orders-0@4.", "Cancelled orders-1@0."])
    assert done.stderr.startswith("headwater: No message waits as orders-0@99:")
    assert ids(delay(running, "list", "orders")) == ["orders-0@3"]
    done = delay(running, "cancel", "--sender-id", "mine", "--topic", "orders", "--json")
    assert json.loads(done.stdout) == {"id": "orders-0@3", "done": "cancelled"}


def test_messages_get_another_time(running: DelayingBroker) -> None:
    done = delay(running, "reschedule", "orders-0@3", "--deliver-at", "1970-01-01T01:00:01+01:00")
    assert (done.exit_code, done.stdout) == (0, "Rescheduled orders-0@3.\n")
    assert running.delays.at("orders").messages[3].due_ms == 1000
    in_one = ("--sender-id", "mine", "--topic", "orders", "--partition", 1)
    done = delay(running, "reschedule", *in_one, "--delay", "7d")
    assert done.stdout == "Rescheduled orders-1@0.\n"
    assert running.delays.at("orders", 1).messages[0].due_ms > 7 * 86_400_000
    assert delay(running, "now", "orders-0@4").stdout == "Delivers now orders-0@4.\n"


def test_what_waits_is_counted(running: DelayingBroker) -> None:
    counted = delay(running, "stats")
    assert (counted.exit_code, counted.stderr) == (0, "")
    assert [line.split()[:3] for line in counted.lines[1:]] == [
        ["orders", "0", "2"],
        ["orders", "1", "1"],
        ["payments", "0", "0"],
    ]
    counted = delay(running, "stats", "payments", "--json")
    assert json.loads(counted.stdout) == {
        "topic": "payments",
        "partition": 0,
        "waiting": 0,
        "waiting_bytes": 0,
        "due_within_minute": 0,
        "next_due_ms": None,
        "delivered": 0,
        "cancelled": 0,
        "expired": 0,
        "deleted": 0,
        "unknown": 0,
        "rolled_bytes": 0,
        "index_bytes": 0,
    }


def test_a_topic_that_is_not_there(running: DelayingBroker) -> None:
    for action in (("list", "nowhere"), ("cancel", "nowhere-0@1"), ("stats", "nowhere")):
        failed = delay(running, *action)
        assert (failed.exit_code, failed.stdout) == (1, "")
        assert failed.stderr == "headwater: There is no topic 'nowhere'.\n"


def test_a_delayed_line_for_a_topic_without_delays(running: DelayingBroker) -> None:
    failed = run_command(
        "produce", "orders", "--delay", "30s", "-b", running.bootstrap, input=b"x\n"
    )
    assert (failed.exit_code, failed.stdout) == (1, "")
    assert "topic 'orders' cannot be given a delay" in failed.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("delay", "list"), "name a topic"),
        (("delay", "cancel"), "name messages in one of the two ways"),
        (("delay", "cancel", "orders"), "'orders' is not the id of a message"),
        (("delay", "cancel", "orders-0@1", "--sender-id", "x"), "in one of the two ways"),
        (("delay", "cancel", "orders-0@1", "--topic", "orders"), "an id says it already"),
        (("delay", "now", "--sender-id", "x"), "name the topic too"),
        (("delay", "now", "--sender-id", "", "--topic", "orders"), "cannot be empty"),
        (("delay", "reschedule", "orders-0@1"), "give one of the two"),
        (("delay", "reschedule", "orders-0@1", "--delay", "soon"), "'soon' is no length of time"),
        (("delay", "list", "orders", "--from", "tomorrow"), "'tomorrow' is no time such as"),
        (("delay", "list", "orders", "--to", "2026-11-20T10:00"), "has no time zone"),
        (("delay", "list", "orders", "--to", "1969-01-01T00:00Z"), "is before 1970"),
        (("delay", "list", "orders", "--to", "9" * 400), "is no time such as"),
        (("delay", "list", "orders", "--limit", "0"), "--limit"),
        (("produce", "orders", "--delay", "1s", "--deliver-at", "5"), "give one of the two"),
        (("produce", "orders", "--delay", "-5"), "'-5' is no length of time"),
        (("produce", "orders", "--delay-id", "x"), "it needs --delay or --deliver-at"),
        (("produce", "orders", "--delay", "1", "--delay-id", "x" * 257), "is too long"),
        (("produce", "orders", "--delay", "1", "--expire-at", "x"), "'x' is no time such as"),
    ],
)
def test_wrong_usages(arguments: tuple[str, ...], sentence: str) -> None:
    refused = run_command(*arguments, "-b", "127.0.0.1:1")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert sentence.lower() in refused.stderr.lower()
    assert refused.stderr.count("headwater: ") == 1
