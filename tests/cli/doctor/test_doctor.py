import asyncio
import os
import resource
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.base.python_build import Optimisation, PythonBuild
from headwater.cli.app import main
from headwater.cli.doctor import machine_check
from headwater.cli.doctor.cluster_check import check_log_directories
from headwater.cli.doctor.examination import examine_cluster
from headwater.cli.doctor.findings import Finding, Verdict
from headwater.cli.doctor.metrics_check import Reading, check_metrics
from headwater.cli.doctor.replica_check import check_replicas
from headwater.cli.metrics.page import MetricsPage
from headwater.cli.output.sizes import size_text
from headwater.client.admin import LogDirectory
from headwater.client.connection.cluster_metadata import PartitionInfo, TopicInfo
from headwater.testing import broker
from headwater.testing.running_broker import RunningBroker
from tests.support.brokers.clusters import Cluster

GOOD, NOTE, PROBLEM = Verdict.GOOD, Verdict.NOTE, Verdict.PROBLEM


def verdicts(findings: Iterator[Finding] | list[Finding], subject: str) -> list[Verdict]:
    return [finding.verdict for finding in findings if finding.subject == subject]


# -- this machine --------------------------------------------------------------------------------


def test_a_directory_tells_whose_it_is_and_how_it_was_left(tmp_path: Path) -> None:
    def said() -> Finding:
        found = list(machine_check.check_data_directory(str(tmp_path)))
        return next(finding for finding in found if finding.subject == "data")

    assert said().verdict is NOTE and "not been used" in said().sentence
    with broker(tmp_path, settings={"broker.id": "3"}):
        assert said().verdict is GOOD
        assert "broker 3" in said().sentence and "is running" in said().sentence
    assert said().verdict is GOOD and "left it clean" in said().sentence
    (tmp_path / ".kafka_cleanshutdown").unlink()
    assert said().verdict is NOTE and "recover" in said().sentence
    (tmp_path / "meta.properties").write_text("version=9\n")
    assert said().verdict is PROBLEM and "meta.properties" in said().sentence


def test_looking_leaves_nothing_behind(tmp_path: Path) -> None:
    findings = list(machine_check.check_data_directory(str(tmp_path)))
    assert verdicts(findings, "disk sync") in ([GOOD], [NOTE])
    assert os.listdir(tmp_path) == []


def test_what_is_no_directory_is_a_problem(tmp_path: Path) -> None:
    findings = list(machine_check.check_data_directory(str(tmp_path / "absent")))
    assert [finding.verdict for finding in findings] == [PROBLEM]


@pytest.mark.parametrize(
    ("free_bytes", "total_bytes", "verdict"),
    [
        (500_000_000_000, 10**12, GOOD),
        (90_000_000_000, 10**12, PROBLEM),
        (900_000_000, 2_000_000_000, PROBLEM),
        (0, 0, PROBLEM),
    ],
)
def test_space(free_bytes: int, total_bytes: int, verdict: Verdict) -> None:
    assert machine_check.space_finding("/data", free_bytes, total_bytes).verdict is verdict


@pytest.mark.parametrize(
    ("kind", "verdict"), [("ext4", GOOD), ("tmpfs", PROBLEM), ("nfs4", PROBLEM), ("overlay", NOTE)]
)
def test_kinds_of_disks(
    kind: str, verdict: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_check, "_file_system", lambda _path: kind)
    findings = list(machine_check.check_data_directory(str(tmp_path)))
    assert verdicts(findings, "disk type") == [verdict]


@pytest.mark.parametrize(
    ("limit", "verdict"), [(1024, PROBLEM), (65_536, GOOD), (resource.RLIM_INFINITY, GOOD)]
)
def test_limits(limit: int, verdict: Verdict, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (1024, limit))
    assert [finding.verdict for finding in machine_check.check_limits()] == [verdict]


@pytest.mark.parametrize(
    ("optimisation", "verdict"),
    [(Optimisation.PLAIN, NOTE), (Optimisation.PROFILED, GOOD), (Optimisation.UNTOLD, GOOD)],
)
def test_a_slow_build_of_python_is_worth_a_note(
    optimisation: Optimisation, verdict: Verdict
) -> None:
    finding = machine_check.check_python(PythonBuild("CPython 3.14.6", optimisation))
    assert finding.verdict is verdict
    assert "CPython 3.14.6" in finding.sentence
    assert ("optimisations" in finding.sentence) == (verdict is NOTE)


def test_sizes_for_people() -> None:
    sizes = [size_text(size) for size in (7, 1500, 2_500_000, 3 * 10**9, 4.2e13)]
    assert sizes == ["7 bytes", "1.5 KB", "2.5 MB", "3.0 GB", "42.0 TB"]


# -- a cluster -----------------------------------------------------------------------------------


def topic(*partitions: PartitionInfo) -> TopicInfo:
    return TopicInfo("orders", uuid.UUID(int=1), False, partitions)


def test_partitions_in_trouble_are_named() -> None:
    healthy = PartitionInfo(0, 1, 0, (1, 2), (1, 2))
    behind = PartitionInfo(1, 1, 0, (1, 2), (1,))
    leaderless = PartitionInfo(2, -1, 0, (1, 2), ())
    assert [each.verdict for each in check_replicas([topic(healthy)])] == [GOOD]
    findings = list(check_replicas([topic(healthy, behind, leaderless)]))
    assert [each.verdict for each in findings] == [PROBLEM, PROBLEM]
    assert "orders-2" in findings[0].sentence and "Without a leader" in findings[0].sentence
    assert "orders-1" in findings[1].sentence and "Under-replicated" in findings[1].sentence


def test_a_disk_that_is_offline_or_full_is_a_problem() -> None:
    offline = LogDirectory("/a", 56, {}, -1, -1)
    full = LogDirectory("/b", 0, {}, 10**12, 10**9)
    silent = LogDirectory("/c", 0, {}, -1, -1)
    findings = check_log_directories(3, [offline, full, silent])
    assert [each.verdict for each in findings] == [PROBLEM, PROBLEM]
    assert "/a of broker 3 is offline" in findings[0].sentence


def page(**values: float) -> MetricsPage:
    lines = [f"headwater_{name} {value}" for name, value in values.items()]
    return MetricsPage("\n".join(['headwater_build_info{node_id="7"} 1', *lines]))


@pytest.mark.parametrize(("share", "verdict"), [(0.29, PROBLEM), (0.30, GOOD), (0.95, GOOD)])
def test_a_broker_without_idle_time_is_near_its_limit(share: float, verdict: Verdict) -> None:
    for name in ("network_processor_avg_idle_percent", "request_handler_avg_idle_percent"):
        reading = Reading(page(**{name: share}), 0, 0)
        assert verdicts(check_metrics([reading], 3), "load") == [verdict]


@pytest.mark.parametrize(
    ("told_s", "verdict"), [(95, PROBLEM), (99.5, GOOD), (101, GOOD), (104.5, PROBLEM)]
)
def test_clocks_are_compared(told_s: float, verdict: Verdict) -> None:
    reading = Reading(page(clock_seconds=told_s), asked_s=100, answered_s=102)
    findings = list(check_metrics([reading], 3))
    assert verdicts(findings, "clock") == [verdict]
    assert "broker 7" in findings[0].sentence


@pytest.mark.parametrize(("overdue_s", "verdict"), [(0, GOOD), (5, GOOD), (5.1, PROBLEM)])
def test_deliveries_that_are_late_are_told(overdue_s: float, verdict: Verdict) -> None:
    reading = Reading(page(delay_overdue_seconds=overdue_s), 0, 0)
    assert verdicts(check_metrics([reading], 3), "delay") == [verdict]
    assert verdicts(check_metrics([Reading(page(), 0, 0)], 3), "delay") == []


@pytest.mark.parametrize(("held_up", "verdict"), [(0, GOOD), (1, PROBLEM)])
def test_dead_letters_that_are_held_up_are_told(held_up: int, verdict: Verdict) -> None:
    reading = Reading(page(dead_letters_held_up=held_up), 0, 0)
    assert verdicts(check_metrics([reading], 3), "dead letters") == [verdict]
    assert verdicts(check_metrics([Reading(page(), 0, 0)], 3), "dead letters") == []


def test_an_open_breaker_of_a_retry_topic_is_told() -> None:
    for open_count, verdicts_told in ((0, [GOOD]), (2, [PROBLEM, GOOD])):
        figures = page(dead_letters_held_up=0, retry_breakers_open=open_count)
        found = list(check_metrics([Reading(figures, 0, 0)], 3))
        assert verdicts(found, "dead letters") == verdicts_told


@pytest.mark.parametrize(
    ("counts", "verdict"), [([1, 0, 0], GOOD), ([0, 0, 0], PROBLEM), ([1, 1, 0], PROBLEM)]
)
def test_there_is_one_active_controller(counts: list[int], verdict: Verdict) -> None:
    readings = [Reading(page(active_controller_count=count), 0, 0) for count in counts]
    assert verdicts(check_metrics(readings, 3), "controller") == [verdict]
    # Who does not see all brokers cannot tell.
    assert verdicts(check_metrics(readings[:2], 3), "controller") == []


# -- the command ---------------------------------------------------------------------------------


def test_a_healthy_broker_is_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = {"metrics.listen": "127.0.0.1:0", "acks.all.flush": "auto"}
    with broker(tmp_path, settings=settings) as running:
        running.create_topic("orders", partitions=3)
        address = running.metrics_address
        assert address is not None
        arguments = ["-b", running.bootstrap, "--data-dir", str(tmp_path)]
        code = main(["doctor", *arguments, "--metrics-address", address])
        shown = capsys.readouterr()
        # How full this machine's disk is and how many files it allows is not ours to say.
        bad = [line for line in shown.out.splitlines() if line.startswith("BAD")]
        assert all("disk space" in line or "open files" in line for line in bad), bad
        assert code == (1 if bad else 0)
        assert "  python:" in shown.out
        for subject in ("listeners", "controller", "partitions", "durability", "load", "clock"):
            assert f"ok    {subject}:" in shown.out, subject
        assert "survives a power failure" in shown.out
        main(["doctor", *arguments, "--metrics-address", address, "--quiet"])
        assert "ok    " not in capsys.readouterr().out


def test_a_broker_that_is_not_there_is_a_problem(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "-b", "127.0.0.1:1"]) == 1
    shown = capsys.readouterr()
    assert "BAD   bootstrap:   Cannot connect to 127.0.0.1:1" in shown.out
    assert "problem" in shown.out.splitlines()[-1]
    assert shown.err == ""


def examined(running: RunningBroker) -> list[Finding]:
    async def collect() -> list[Finding]:
        return [each async for each in examine_cluster(running.bootstrap, [], 10.0)]

    return asyncio.run(collect())


def test_an_address_that_leads_nowhere_is_explained() -> None:
    wrong = {"advertised.listeners": "PLAINTEXT://127.0.0.1:1"}
    with broker(settings=wrong) as running:
        found = [each for each in examined(running) if each.subject == "listeners"]
    assert [each.verdict for each in found] == [PROBLEM]
    assert "tells clients to come to 127.0.0.1:1" in found[0].sentence
    assert "advertised.listeners" in found[0].sentence


def test_a_broker_that_does_not_wait_for_its_disk_is_told() -> None:
    with broker() as running:
        found = examined(running)
    assert verdicts(found, "durability") == [PROBLEM]
    assert verdicts(found, "metrics") == [NOTE]
    assert verdicts(found, "controller") == [GOOD]


def test_any_cluster_can_be_examined(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor", "-b", cluster.bootstrap])
    shown = capsys.readouterr()
    assert shown.err == ""
    for subject in ("bootstrap", "listeners", "controller", "partitions"):
        assert f"ok    {subject}:" in shown.out, subject
    assert "durability:" in shown.out and "metrics:" in shown.out


def test_it_is_done_soon(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    started = time.monotonic()
    main(["doctor", "--data-dir", str(tmp_path)])
    assert time.monotonic() - started < 10
    assert "bootstrap" not in capsys.readouterr().out
