import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from headwater.base.settings import SettingError
from headwater.cli.app import main
from headwater.cli.serve.command import DEFAULT_LISTEN
from headwater.cli.serve.durability_promise import durability_promise
from headwater.cli.serve.settings import serve_settings
from headwater.testing import broker
from headwater.testing.broker_process import free_port, wait_until
from tests.support.brokers.serve_process import ServeProcess, run_serve, serving
from tests.support.kafka.stock_settings import STOCK_SERVER


def settings_of(
    *,
    listen: list[str] | None = None,
    data_dirs: list[str] | None = None,
    broker_id: int | None = None,
    config: Path | None = None,
    assignments: list[str] | None = None,
    zookeeper: str | None = None,
) -> dict[str, str | None]:
    values = serve_settings(
        listen=listen or [],
        data_dirs=data_dirs or [],
        broker_id=broker_id,
        zookeeper=zookeeper,
        config_path=None if config is None else str(config),
        assignments=assignments or [],
    )
    names = (
        *("listeners", "log.dirs", "log.dir", "broker.id", "node.id", "num.partitions"),
        *("zookeeper.connect", "trace.sample"),
    )
    return {name: values.render(name) for name in names}


def test_without_options_it_is_a_broker_for_this_machine_only() -> None:
    settings = settings_of()
    assert settings["listeners"] == DEFAULT_LISTEN
    assert settings["log.dirs"] == os.path.abspath("headwater-data")
    assert settings["broker.id"] == "-1"


def test_a_broker_for_development_has_all_records_traced() -> None:
    assert settings_of()["trace.sample"] == "1.0"
    assert settings_of(assignments=["trace.sample=0.5"])["trace.sample"] == "0.5"
    assert settings_of(zookeeper="localhost:2181")["trace.sample"] == "0.01"


def test_flags_beat_assignments_and_assignments_beat_the_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("listeners=PLAINTEXT://file:1\nlog.dirs=/file\nnum.partitions=2\nbroker.id=1\n")
    from_file = settings_of(config=file)
    assert from_file["listeners"] == "PLAINTEXT://file:1"
    assert (from_file["log.dirs"], from_file["broker.id"]) == ("/file", "1")
    assigned = settings_of(config=file, assignments=["num.partitions=5", "log.dirs=/set"])
    assert (assigned["num.partitions"], assigned["log.dirs"]) == ("5", "/set")
    flagged = settings_of(
        config=file,
        assignments=["log.dirs=/set", "broker.id=2"],
        listen=["127.0.0.1:0", "[::1]:0"],
        data_dirs=["/a", "/b"],
        broker_id=3,
    )
    assert flagged["listeners"] == "127.0.0.1:0,[::1]:0"
    assert (flagged["log.dirs"], flagged["broker.id"]) == ("/a,/b", "3")


def test_the_broker_id_flag_also_beats_the_other_name_of_it(tmp_path: Path) -> None:
    file = tmp_path / "kraft.properties"
    file.write_text("node.id=7\n")
    settings = settings_of(config=file, broker_id=3)
    assert (settings["broker.id"], settings["node.id"]) == ("3", "3")


def test_the_zookeeper_flag_names_the_cluster_and_must_make_sense() -> None:
    assert settings_of()["zookeeper.connect"] is None
    assignment = ["zookeeper.connect=other:1"]
    settings = settings_of(zookeeper="zoo1:2181,zoo2:2181/orders", assignments=assignment)
    assert settings["zookeeper.connect"] == "zoo1:2181,zoo2:2181/orders"
    with pytest.raises(SettingError, match="'zoo:port' is not HOST:PORT"):
        settings_of(zookeeper="zoo:port")


def test_log_dir_of_a_file_counts_where_log_dirs_is_not_set(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("log.dir=/file\n")
    assert settings_of(config=file)["log.dirs"] is None


def test_a_file_that_is_no_text_is_told() -> None:
    with pytest.raises(SettingError, match="not text"):
        settings_of(config=Path(sys.executable))


@pytest.mark.parametrize(
    ("flush", "messages", "is_alone", "min_insync", "survives", "words"),
    [
        ("auto", 10**9, True, 1, True, "is on disk and survives a power failure"),
        ("auto", 10**9, False, 1, True, "on disk where only one is in sync"),
        ("auto", 10**9, False, 2, True, "every in-sync replica, of which there are 2 at least"),
        ("leader", 10**9, True, 1, True, "leader's disk (acks.all.flush=leader)."),
        ("leader", 10**9, False, 2, True, "and on every in-sync replica"),
        ("off", 10**9, True, 2, False, "power failure may lose"),
        ("off", 10**9, False, 1, False, "power failure may lose"),
        ("off", 10**9, False, 2, True, "lost if all of them lose power at once"),
        ("off", 1, True, 1, True, "Every acknowledged record"),
    ],
)
def test_the_promise_in_words(
    flush: str, messages: int, is_alone: bool, min_insync: int, survives: bool, words: str
) -> None:
    promise = durability_promise(flush, messages, is_alone=is_alone, min_insync_replicas=min_insync)
    assert promise.survives_power_loss is survives
    assert words in promise.sentence


def test_it_serves_until_sigterm_and_leaves_the_data_clean(tmp_path: Path) -> None:
    with serving(tmp_path / "new" / "data", "--log-level", "warning") as first:
        host, _, port = first.address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=10):
            pass
        assert "survives a power failure" in first.output
        assert str(tmp_path / "new" / "data") in first.output
        code, output, errors = first.stop()
    assert (code, errors) == (0, "")
    assert output.splitlines()[-1] == "Headwater has stopped."
    assert (tmp_path / "new" / "data" / ".kafka_cleanshutdown").exists()
    quietly = ("--log-level", "warning")
    with serving(tmp_path / "new" / "data", "--set", "acks.all.flush=off", *quietly) as again:
        assert (again.cluster_id, again.broker_id) == (first.cluster_id, first.broker_id)
        assert "a power failure may lose" in again.output
        code, _, errors = again.stop(signal.SIGINT)
    assert (code, errors) == (0, "")


def test_what_keeps_it_from_starting_is_told_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    free = ["--listen", "127.0.0.1:0"]
    other = ["--data-dir", str(tmp_path / "other")]
    with broker(tmp_path / "data") as running:
        cases: list[tuple[list[str], str]] = [
            (["--listen", running.bootstrap, *other], "in use"),
            ([*free, "--data-dir", str(tmp_path / "data")], "in use by another"),
            ([*free, "--data-dir", str(file / "below")], "cannot be used"),
            ([*free, *other, "--set", "num.partition=3"], "did you mean num.partitions"),
            ([*free, *other, "--set", "num.partitions=many"], "num.partitions"),
            ([*free, *other, "--set", "nonsense"], "must be name=value"),
            ([*free, *other, "--config", str(tmp_path / "absent")], "absent: No such file"),
            (["--listen", "127.0.0.1:port", *other], "port"),
        ]
        for arguments, words in cases:
            assert main(["serve", *arguments]) == 1
            errors = capsys.readouterr().err
            assert errors.startswith("headwater: ") and words in errors, errors
            assert errors.count("\n") == 1 and "unexpected" not in errors, errors
            assert not errors.rstrip().endswith(".."), errors
    belongs = ["--data-dir", str(tmp_path / "data"), "--broker-id", "6"]
    assert main(["serve", *free, *belongs]) == 1
    assert "belongs to broker 0" in capsys.readouterr().err


def test_the_file_that_comes_with_kafka_starts_a_broker(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(STOCK_SERVER)
    quietly = ("--log-level", "warning")
    with serving(tmp_path / "data", "--config", str(file), *quietly) as process:
        assert process.broker_id == 1
        code, _, errors = process.stop()
    assert (code, errors) == (0, "")


def test_settings_of_a_file_that_nobody_knows_are_left_out_with_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "server.properties"
    file.write_text("no.such.thing=1\nnum.partitions=7\nneither.this=2\n")
    assert settings_of(config=file)["num.partitions"] == "7"
    errors = capsys.readouterr().err
    assert errors.startswith(f"headwater: {file} has 2 settings") and errors.count("\n") == 1
    assert "no.such.thing (line 1)" in errors and "neither.this (line 3)" in errors


def test_all_faults_of_file_and_command_line_are_told_a_line_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=0\nlog.dirs=/a,/a\nlisteners=SSL://:1\n")
    assert main(["serve", "--config", str(file), "--set", "no.such=1", "--zookeeper", "zoo:x"]) == 1
    lines = capsys.readouterr().err.splitlines()
    expected = ["num.partitions in line 1 of", "'no.such' in --set", "log.dirs", "SSL", "'zoo:x'"]
    assert len(lines) == len(expected)
    for line, words in zip(lines, expected, strict=True):
        assert line.startswith("headwater: ") and words in line, line


def test_a_flag_may_mend_what_the_file_says_of_listeners(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("listeners=SSL://:9093\n")
    settings = settings_of(config=file, listen=["127.0.0.1:0"])
    assert settings["listeners"] == "127.0.0.1:0"


def test_several_listeners_are_told(tmp_path: Path) -> None:
    protocols = "listener.security.protocol.map=INSIDE:PLAINTEXT,PLAINTEXT:PLAINTEXT"
    inside = ["--listen", "INSIDE://127.0.0.1:0", "--set", protocols]
    with serving(tmp_path, *inside, "--broker-id", "7") as process:
        assert process.broker_id == 7
        assert "(PLAINTEXT)" in process.output and "(INSIDE)" in process.output


def test_what_it_does_is_in_the_log_and_probes_find_it_ready(tmp_path: Path) -> None:
    log = tmp_path / "log"
    logged = ("--log-format", "json", "--log-file", str(log), "--broker-id", "7")
    with serving(tmp_path / "data", *logged, "--set", "metrics.listen=127.0.0.1:0") as process:
        [url] = re.findall(r"metrics +(http://\S+)/metrics", process.output)
        for page, answer in (("ready", "ready"), ("health", "healthy")):
            with urllib.request.urlopen(f"{url}/{page}", timeout=10) as response:
                assert json.loads(response.read()) == {"status": answer}
        code, _, errors = process.stop()
    assert (code, errors) == (0, "")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    messages = [line["message"] for line in lines]
    assert any(each.startswith("Broker 7 is ready, with 0 partitions") for each in messages)
    assert "SIGTERM came: Headwater stops." in messages
    assert messages[-1].startswith("The broker has stopped, in ")
    assert {line.get("broker") for line in lines} == {7, None}


def test_a_broker_that_waits_for_its_store_is_well_but_not_ready(tmp_path: Path) -> None:
    port = free_port()
    nowhere = ("--zookeeper", "127.0.0.1:1", "--listen", "127.0.0.1:0")
    process = ServeProcess(
        *nowhere, "--data-dir", str(tmp_path), "--set", f"metrics.listen=127.0.0.1:{port}"
    )

    def status_of(page: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=10) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""

    try:
        wait_until(lambda: "waits for its metadata store" in status_of("ready")[1], "it waits", 60)
        assert status_of("ready")[0] == 503
        assert status_of("health") == (200, '{"status": "healthy"}\n')
    finally:
        code, _, errors = process.stop()
    assert code == 0 and "SIGTERM came: Headwater stops." in errors


def test_why_it_does_not_start_is_in_the_log_too(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    impossible = ("--listen", "127.0.0.1:0", "--data-dir", str(file / "below"))
    log = tmp_path / "log"
    code, _, errors = run_serve(*impossible, "--log-file", str(log))
    assert code == 1 and errors.startswith("headwater: The data directory")
    assert errors.removeprefix("headwater: ") in log.read_text()
    code, _, errors = run_serve(*impossible, "--log-format", "json")
    [line] = [json.loads(line) for line in errors.splitlines()]
    assert code == 1 and line["message"].startswith("The data directory")


def test_a_log_that_cannot_be_is_a_mistake_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "data"))
    assert main(["serve", *place, "--log-format", "xml"]) == 2
    assert "'xml' is none of text, json" in capsys.readouterr().err
    assert main(["serve", *place, "--log-file-count", "0"]) == 2
    capsys.readouterr()
    assert main(["serve", *place, "--log-file", str(tmp_path)]) == 1
    errors = capsys.readouterr().err
    assert errors == f"headwater: The log file {tmp_path} cannot be written: Is a directory.\n"


def test_a_wrong_log_level_is_a_mistake_on_the_command_line(tmp_path: Path) -> None:
    code, output, errors = run_serve("--data-dir", str(tmp_path), "--log-level", "loud")
    assert (code, output) == (2, "")
    assert "'loud' is none of" in errors


@pytest.mark.parametrize(
    ("name", "example"),
    [
        ("serve", "headwater serve --listen 0.0.0.0:9092"),
        ("metrics", "headwater metrics --metrics-address"),
        ("doctor", "headwater doctor --data-dir"),
        ("perf", "Measure any Kafka-compatible cluster"),
    ],
)
def test_help_teaches_and_loads_nothing_else(name: str, example: str) -> None:
    script = (
        "import sys\n"
        "from headwater.cli.app import main\n"
        f"code = main([{name!r}, '--help'])\n"
        "heavy = {'uvloop', 'asyncio', 'headwater.broker', 'headwater.wire', 'headwater.net'}\n"
        "sys.exit(f'loaded {heavy & set(sys.modules)}' if heavy & set(sys.modules) else code)\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    assert example in finished.stdout
