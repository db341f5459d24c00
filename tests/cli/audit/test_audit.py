"""`headwater audit` on a broker that publishes every second."""

import json
from collections.abc import Iterator

import pytest

from headwater.testing import broker
from headwater.testing.running_broker import RunningBroker
from tests.support.audit.audit_rows import led_rows
from tests.support.command import Finished, run_command
from tests.support.waiting import eventually


@pytest.fixture(scope="module")
def audited() -> Iterator[RunningBroker]:
    settings = {"audit.bucket.ms": "1000", "offsets.topic.num.partitions": "1"}
    with broker(settings=settings) as running:
        yield running


def audit(running: RunningBroker, *arguments: object) -> Finished:
    return run_command("audit", *arguments, "-b", running.bootstrap)


def commit(running: RunningBroker, offset: int) -> None:
    reset = ("groups", "reset-offsets", "billing", "--topic", "orders", "--to-offset", offset)
    assert run_command(*reset, "--execute", "-b", running.bootstrap).exit_code == 0


def document(running: RunningBroker) -> dict[str, object]:
    found: dict[str, object] = json.loads(audit(running, "topic", "orders", "--json").stdout)
    return found


def test_a_topic_is_told_from_what_came_to_what_a_group_has_read(audited: RunningBroker) -> None:
    audited.create_topic("orders")
    # Who writes before the leader has looked at its partitions remains a number.
    partitions = audited._serving().context.partitions
    eventually(lambda: any(each.client_ids is not None for each in partitions))
    written = run_command("produce", "orders", "-b", audited.bootstrap, input=b"x\n" * 10)
    assert written.exit_code == 0
    empty = audit(audited, "topic", "orders")
    assert empty.exit_code == 0
    commit(audited, 10)

    def is_told() -> bool:
        found = document(audited)
        return found["count"] == 10 and bool(found["groups"])

    eventually(is_told)
    told = audit(audited, "topic", "orders", "--buckets")
    assert told.exit_code == 0, told.stdout
    assert "in 10, aborted 0, stored 10" in told.stdout
    assert any(line.split()[:3] == ["billing", "10", "0"] for line in told.lines)
    rows = led_rows(audited._serving().context.partitions)
    producers = [each for row in rows if row["tier"] == "broker" for each in row["producers"]]
    assert producers
    assert all(each["client_id"] for each in producers), "the client is known by its producer's id"
    commit(audited, 7)
    eventually(lambda: audit(audited, "topic", "orders").exit_code == 3)
    alarming = audit(audited, "topic", "orders", "--group", "billing")
    assert "billing went back by 3 records." in alarming.lines
    assert document(audited)["alarms"] == ["billing went back by 3 records."]


def test_what_is_not_there_is_said_in_a_sentence(audited: RunningBroker) -> None:
    missing = audit(audited, "topic", "nowhere")
    assert missing.exit_code == 1
    assert missing.stderr.count("\n") == 1
    assert audit(audited, "topic", "orders", "--last", "soon").exit_code == 2
    group = audit(audited, "topic", "orders", "--group", "nobody")
    assert group.stderr == "Group 'nobody' has committed nothing for orders in that time.\n"
