"""`headwater serve` as a member of a cluster, and as a whole one: --zookeeper and --brokers."""

import time
from pathlib import Path

import pytest

from headwater.cli.app import main
from tests.support.brokers.serve_process import serving
from tests.support.brokers.zookeeper import fresh_chroot, shared_zookeeper
from tests.support.command import run_command

QUICK_SESSIONS = ("--set", "zookeeper.session.timeout.ms=2000")


def test_three_brokers_in_one_process_keep_what_they_have(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "--brokers", "3", "--set", "acks.all.flush=off") as first:
        assert first.broker_id == 0
        assert first.output.count("  listening   ") == 3
        assert "3 brokers, controller" in first.output
        assert "shared by the brokers of this process" in first.output
        cluster = ("--bootstrap-server", first.address)
        created = run_command("topics", "create", "orders", "--replication-factor", "3", *cluster)
        assert created.exit_code == 0, created.stderr
        lines = "".join(f"order {number}\n" for number in range(20))
        produced = run_command("produce", "orders", *cluster, input=lines.encode())
        assert produced.exit_code == 0, produced.stderr
        started_s = time.monotonic()
        code, output, errors = first.stop()
        # Those that are left may say that who went does not answer any more.
        assert code == 0 and "ERROR" not in errors and "Traceback" not in errors, errors
        # They share a log, in which each is known by its id.
        for broker_id in range(3):
            assert f" INFO broker-{broker_id} headwater.broker.server: The broker stops." in errors
        [creation] = [line for line in errors.splitlines() if " created the topic " in line]
        assert " INFO broker-" in creation
        assert time.monotonic() - started_s < 15, "who is last has nobody to hand over to"
        assert output.splitlines()[-1] == "Headwater has stopped."
    for number in range(3):
        assert (tmp_path / "data" / f"broker-{number}" / ".kafka_cleanshutdown").exists()
    with serving(tmp_path / "data", "--brokers", "3") as again:
        assert again.cluster_id == first.cluster_id
        cluster = ("--bootstrap-server", again.address)
        described = run_command("topics", "describe", "orders", *cluster)
        assert "ReplicationFactor: 3" in described.stdout
        consumed = run_command(
            "consume", "orders", "--from-beginning", "--max-messages", "20", *cluster
        )
        assert consumed.stdout == lines


def test_one_broker_does_not_start_on_the_data_of_several(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broker-1").mkdir()
    (tmp_path / "broker-1" / "meta.properties").touch()
    assert main(["serve", "--data-dir", str(tmp_path), "--listen", "127.0.0.1:0"]) == 1
    assert "start it with --brokers" in capsys.readouterr().err


def test_a_zookeeper_that_is_not_there_is_told_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limit = ("--set", "zookeeper.connection.timeout.ms=300")
    place = ("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path))
    assert main(["serve", *place, "--zookeeper", "127.0.0.1:1/orders", *limit]) == 1
    errors = capsys.readouterr().err
    assert errors.startswith("headwater: ZooKeeper at 127.0.0.1:1") and "0.3 s" in errors
    assert errors.count("\n") == 1


def test_who_cannot_join_a_cluster_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    zookeeper = shared_zookeeper().address + fresh_chroot()
    joining = ("--zookeeper", zookeeper, "--log-level", "warning", *QUICK_SESSIONS)
    with serving(tmp_path / "one", "--broker-id", "1", *joining) as first:
        assert f"ZooKeeper {zookeeper}, sessions of 2 s" in first.output
        assert "broker 1, epoch " in first.output and "1 broker, controller 1" in first.output
        place = ("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "two"))
        assert main(["serve", *place, "--broker-id", "1", *joining]) == 1
        errors = capsys.readouterr().err
        assert errors == "headwater: Another broker with the id 1 is alive in this cluster.\n"
        code, _, errors = first.stop()
        assert (code, errors) == (0, "")
    other = shared_zookeeper().address + fresh_chroot()
    place = ("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "one"))
    quietly = ("--log-level", "warning")
    assert main(["serve", *place, "--zookeeper", other, *quietly, *QUICK_SESSIONS]) == 1
    errors = capsys.readouterr().err
    assert f"belongs to cluster {first.cluster_id}" in errors and errors.count("\n") == 1
