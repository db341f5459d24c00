import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from headwater.cli.log.command import app
from headwater.storage.disk.files import DiskFiles
from headwater.wire.records import Record, encode_batch
from tests.support.logs.varied_log import write_varied_log

LOG_NAME = f"{0:020d}.log"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    write_varied_log(DiskFiles(), str(tmp_path / "topic-0"))
    return tmp_path / "topic-0"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)))


def headwater(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headwater", "log", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


# -- dump ----------------------------------------------------------------------------------------


def test_dump_shows_several_files_in_turn(log: Path) -> None:
    paths = [log / LOG_NAME, log / f"{0:020d}.index", log / "leader-epoch-checkpoint"]
    result = run("dump", *paths)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [line for line in lines if line.startswith("Dumping")] == [
        f"Dumping {path}" for path in paths
    ]
    assert lines[-2:] == ["epoch: 0 startOffset: 0", "epoch: 1 startOffset: 50"]
    assert result.stderr == ""


def test_dump_takes_files_as_apaches_tool_does(log: Path) -> None:
    paths = [log / LOG_NAME, log / f"{0:020d}.index"]
    listed = run("dump", "--files", ",".join(map(str, paths)))
    assert listed.stdout == run("dump", *paths).stdout
    assert listed.exit_code == 0


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("--deep-iteration", "| offset: 2 CreateTime: "),
        ("--print-data-log", " key: key payload: a"),
        ("--value-decoder=hex", " key: key payload: 61"),
        ("--key-decoder=base64", " key: a2V5 payload: a"),
        ("--json", '{"type": "log", "starting_offset": 0}'),
        ("--max-bytes=10", "Log starting offset: 0"),
    ],
)
def test_dump_options(log: Path, option: str, expected: str) -> None:
    result = run("dump", option, log / LOG_NAME)
    assert result.exit_code == 0
    assert expected in result.stdout
    assert expected not in run("dump", "--skip-batch-metadata", log / "nothing").stdout


def test_dump_can_leave_out_metadata(log: Path) -> None:
    options = ("--print-data-log", "--skip-batch-metadata", "--skip-record-metadata")
    result = run("dump", *options, log / LOG_NAME)
    assert "baseOffset" not in result.stdout
    assert "| offset" not in result.stdout
    assert "| key: key payload: a" in result.stdout


def test_dump_checks_indexes_only(log: Path) -> None:
    index = log / f"{0:020d}.index"
    assert run("dump", "--verify-index-only", index).stdout == f"Dumping {index}\n"
    sane = run("dump", "--index-sanity-check", index)
    assert sane.stdout == f"Dumping {index}\n{index} passed sanity check.\n"


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_dump_of_a_damaged_file_goes_on_and_exits_with_1(log: Path, options: tuple[str]) -> None:
    path = log / LOG_NAME
    content = bytearray(path.read_bytes())
    content[70] ^= 1
    path.write_bytes(content)
    result = run("dump", *options, path, log / "notes.txt", log / "leader-epoch-checkpoint")
    assert result.exit_code == 1
    told = result.stdout if options else result.stderr
    assert "the checksum of the batch at offset 0 fails" in told
    assert "notes.txt" in told
    last_line = result.stdout.splitlines()[-1]
    assert last_line.endswith("startOffset: 50") or json.loads(last_line)["start_offset"] == 50


@pytest.mark.parametrize(
    "arguments",
    [("dump",), ("dump", "--value-decoder", "octal", "x"), ("dump", "--max-bytes", "-1", "x")],
)
def test_dump_with_a_senseless_command_line_exits_with_2(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Usage" in result.stderr


def test_dump_in_a_process_of_its_own(log: Path) -> None:
    finished = headwater("dump", "--print-data-log", log / LOG_NAME)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert finished.stdout == run("dump", "--print-data-log", log / LOG_NAME).stdout
    assert "key: clé payload: \\x00\\xffbinary\\n" in finished.stdout


def test_dump_into_a_pipe_that_closes_early_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / LOG_NAME
    records = [Record(number, 0, None, b"x" * 50) for number in range(5000)]
    path.write_bytes(encode_batch(records))
    command = [sys.executable, "-m", "headwater", "log", "dump", "--print-data-log", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 1


# -- verify --------------------------------------------------------------------------------------


def test_verify_of_a_sound_log(log: Path) -> None:
    result = run("verify", log)
    assert result.exit_code == 0
    rows = dict(line.split() for line in result.stdout.splitlines())
    assert (rows["partitions"], rows["segments"], rows["records"]) == ("1", "3", "78")
    assert (rows["problems"], rows["notes"]) == ("0", "0")
    assert "MB/s" in rows


def test_verify_tells_problems_and_exits_with_1(log: Path) -> None:
    path = log / LOG_NAME
    os.truncate(path, 100)
    result = run("verify", "--deep", log)
    assert result.exit_code == 1
    first_line = result.stdout.splitlines()[0]
    assert first_line.startswith(f"problem: {path}: position 83: a batch of 72 bytes starts here")


def test_verify_as_json(log: Path) -> None:
    (log / "notes.txt").touch()
    os.truncate(log / LOG_NAME, 100)
    result = run("verify", "--json", log, log)
    assert result.exit_code == 1
    *findings, summary = map(json.loads, result.stdout.splitlines())
    assert {finding["type"] for finding in findings} == {"finding"}
    assert {finding["severity"] for finding in findings} == {"problem", "note"}
    assert findings[0].keys() == {"type", "severity", "path", "position", "what", "remedy"}
    assert summary["type"] == "summary"
    assert (summary["partitions"], summary["notes"]) == (2, 2)
    assert summary["problems"] == len(findings) - 2


@pytest.mark.parametrize("name", ["absent", "empty"])
def test_verify_without_a_log_exits_with_2(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    result = run("verify", tmp_path / name)
    assert result.exit_code == 2
    assert "Usage" in result.stderr


def test_verify_in_a_process_of_its_own_and_by_a_relative_name(log: Path) -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "headwater", "log", "verify", "."],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=log,
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    assert "partitions" in finished.stdout


# -- help ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "example"),
    [
        ("dump", "headwater log dump --print-data-log orders-0"),
        ("verify", "headwater log verify --deep /var/lib/headwater"),
    ],
)
def test_help_teaches_by_example(command: str, example: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    assert example in result.stdout


def test_help_loads_nothing_of_the_storage_engine() -> None:
    script = (
        "import sys\n"
        "from headwater.cli.app import main\n"
        "code = main(['log', 'dump', '--help'])\n"
        "heavy = {'headwater.storage', 'headwater.wire', 'asyncio', 'kio', 'uvloop'}\n"
        "sys.exit(f'loaded {heavy & set(sys.modules)}' if heavy & set(sys.modules) else code)\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert (finished.returncode, finished.stderr) == (0, "")
