"""`--json`: one document with stable names, the same exit codes, and sentences for failures."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.testing import broker
from headwater.testing.running_broker import RunningBroker
from tests.support.command import Finished, run_command


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    """Broker 4 with the topic `orders`: two records in partition 0, none in partition 1."""
    with broker(settings={"broker.id": "4", "metrics.listen": "127.0.0.1:0"}) as started:
        started.create_topic("orders", partitions=2, configs={"retention.ms": "7777"})
        written = run_command(
            *("produce", "orders", "--partition", 0, "-b", started.bootstrap), input=b"a\nb\n"
        )
        assert written.exit_code == 0
        yield started


def document(finished: Finished, *, exit_code: int = 0) -> dict[str, Any]:
    assert finished.exit_code == exit_code, finished.stderr
    read = json.loads(finished.stdout)
    assert isinstance(read, dict)
    return read


def ask(running: RunningBroker, *arguments: object) -> Finished:
    return run_command(*arguments, "--json", "-b", running.bootstrap)


def test_topics_are_listed_and_described(running: RunningBroker) -> None:
    [listed] = document(ask(running, "topics", "list", "orders"))["topics"]
    assert listed == {
        "topic": "orders",
        "topic_id": listed["topic_id"],
        "internal": False,
        "partition_count": 2,
        "replication_factor": 1,
    }
    assert len(listed["topic_id"]) == 22
    assert document(ask(running, "topics", "list", "nothing"))["topics"] == []
    [described] = document(ask(running, "topics", "--describe", "--topic", "orders"))["topics"]
    partitions = described.pop("partitions")
    assert described.pop("configs")["retention.ms"] == "7777"
    assert described == listed
    assert partitions == [
        {
            "partition": number,
            "leader": 4,
            "leader_epoch": partitions[number]["leader_epoch"],
            "replicas": [4],
            "isr": [4],
            "adding": [],
            "removing": [],
            "elr": [],
            "last_known_elr": [],
        }
        for number in range(2)
    ]
    trouble = ask(running, "topics", "describe", "--unavailable-partitions")
    assert document(trouble) == {"topics": []}


def test_the_outcomes_of_changes_to_topics(running: RunningBroker) -> None:
    def outcome(*arguments: object) -> Any:
        [entry] = document(ask(running, "topics", *arguments))["topics"]
        return entry

    assert outcome("create", "new") == {"topic": "new", "outcome": "created"}
    assert outcome("create", "new", "--if-not-exists") == {"topic": "new", "outcome": "exists"}
    assert outcome("alter", "new", "-p", 3) == {"topic": "new", "outcome": "altered"}
    fewer = ask(running, "topics", "alter", "new", "-p", 2)
    [entry] = document(fewer, exit_code=1)["topics"]
    assert entry == {
        "topic": "new",
        "outcome": "failed",
        "error": "INVALID_PARTITIONS",
        "message": "Topic already has 3 partitions; 2 would not be an increase.",
    }
    assert fewer.stderr == f"headwater: {entry['message']}\n"
    assert outcome("delete", "new") == {"topic": "new", "outcome": "deleted"}
    again = ask(running, "topics", "create", "orders")
    assert (again.exit_code, again.stdout) == (1, "")
    assert again.stderr == "headwater: The topic 'orders' exists already.\n"


def test_configs_are_described(running: RunningBroker) -> None:
    [entity] = document(ask(running, "configs", "describe", "--topic", "orders"))["entities"]
    assert (entity["entity_type"], entity["entity_name"]) == ("topics", "orders")
    [config] = entity["configs"]
    assert config == {
        "name": "retention.ms",
        "value": "7777",
        "source": "DYNAMIC_TOPIC_CONFIG",
        "sensitive": False,
        "read_only": False,
        "synonyms": config["synonyms"],
    }
    assert config["synonyms"][0] == {
        "name": "retention.ms",
        "value": "7777",
        "source": "DYNAMIC_TOPIC_CONFIG",
    }
    defaults = document(ask(running, "configs", "describe", "--broker-defaults"))["entities"]
    assert defaults == [{"entity_type": "brokers", "entity_name": None, "configs": []}]


def test_offsets(running: RunningBroker) -> None:
    latest = {"topic": "orders", "offset": 2, "partition": 0, "timestamp_ms": None}
    found = document(ask(running, "get-offsets", "orders"))["offsets"]
    assert found == [latest, latest | {"partition": 1, "offset": 0}]
    [newest] = document(ask(running, "get-offsets", "orders", "--time", -3))["offsets"]
    # Both may have come in the same millisecond.
    assert newest["offset"] in (0, 1) and newest["timestamp_ms"] > 1_700_000_000_000


def test_deleted_records(running: RunningBroker, tmp_path: Path) -> None:
    running.create_topic("short-lived")
    where = ("-b", running.bootstrap)
    assert run_command("produce", "short-lived", *where, input=b"a\nb\n").exit_code == 0
    rows = [
        {"topic": "short-lived", "partition": 0, "offset": 1},
        {"topic": "absent", "partition": 0, "offset": 0},
    ]
    path = tmp_path / "offsets.json"
    path.write_text(json.dumps({"version": 1, "partitions": rows}))
    finished = ask(running, "delete-records", "--offset-json-file", path)
    assert document(finished, exit_code=1)["partitions"] == [
        {"topic": "short-lived", "partition": 0, "low_watermark": 1},
        {
            "topic": "absent",
            "partition": 0,
            "error": "UNKNOWN_TOPIC_OR_PARTITION",
            "message": "There is no topic 'absent'.",
        },
    ]
    assert finished.stderr == "headwater: There is no topic 'absent'.\n"


def test_metrics(running: RunningBroker) -> None:
    address = running.metrics_address
    options = ("--metrics-address", address, "--interval")
    [once] = document(run_command("metrics", *options, 0, "--json"))["brokers"]
    assert (once["broker_id"], once["metrics_address"], once["seconds"]) == (4, address, 0)
    figures = {figure["name"]: figure for figure in once["figures"]}
    records = figures["MessagesIn"]
    assert records["metric"] == "headwater_messages_in_total" and records["value"] >= 2
    assert (records["per_second"], records["bad"]) == (None, False)
    [orders] = [row for row in once["topics"] if row["topic"] == "orders"]
    assert orders["records_in"] == 2 and orders["log_size_bytes"] > 0
    produce = next(row for row in once["requests"] if row["api"].lower() == "produce")
    assert produce["count"] >= 1 and produce["p99_ms"] > 0 and produce["errors"] == 0
    [twice] = document(run_command("metrics", *options, 0.01, "--json"))["brokers"]
    rates = {figure["name"]: figure["per_second"] for figure in twice["figures"]}
    assert rates["BytesIn"] == 0 and rates["Connections"] is None and twice["seconds"] > 0


def test_the_doctor(running: RunningBroker, tmp_path: Path) -> None:
    well = document(run_command("doctor", "--json", "-b", running.bootstrap), exit_code=1)
    assert {finding["verdict"] for finding in well["findings"]} >= {"ok", "problem"}
    assert {"verdict": "ok", "subject": "controller"}.items() <= next(
        finding for finding in well["findings"] if finding["subject"] == "controller"
    ).items()
    gone = run_command("doctor", "--json", "--quiet", "--data-dir", tmp_path / "absent")
    told = document(gone, exit_code=1)
    assert told["problem_count"] >= 1
    assert {
        "verdict": "problem",
        "subject": "data",
        "sentence": f"{tmp_path}/absent is not a directory.",
    } in told["findings"]
    assert all(finding["verdict"] != "ok" for finding in told["findings"])
