import json
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.base.extras import how_to_install
from headwater.pipeline.lake.lake_table import LakeTable
from headwater.testing.running_broker import RunningBroker
from tests.support.command import Finished, run_command
from tests.support.spark.lakes import archive_numbers, write_rows


def lake(*arguments: object) -> Finished:
    return run_command("lake", *arguments)


@pytest.fixture
def archive(tmp_path: Path) -> LakeTable:
    table = LakeTable(tmp_path / "lake")
    for batch_id in range(3):
        archive_numbers(table, batch_id, batch_id * 10, batch_id * 10 + 10)
    return table


def test_verify_tells_that_all_is_well_and_what_is_not(archive: LakeTable) -> None:
    sound = lake("verify", archive.path)
    assert (sound.exit_code, sound.stderr) == (0, "")
    assert sound.lines == [
        "Version 3: 6 files, 60 rows of 1 topic and 2 partitions, without gap or repetition."
    ]
    file = Path(archive.path) / archive.files()[0].path
    file.unlink()
    damaged = lake("verify", "--deep", archive.path)
    assert damaged.exit_code == 1
    assert damaged.lines[0].startswith("BAD  data/topic=orders/date=2026-01-01/")
    assert damaged.lines[0].endswith(".parquet is missing, with 10 rows.")
    assert damaged.lines[-1] == "1 problem."
    [finding] = map(json.loads, lake("verify", "--json", archive.path).lines)
    assert finding["is_problem"] is True


def test_files_and_history_are_listed(archive: LakeTable) -> None:
    files = lake("files", archive.path).lines
    assert files[0].split() == ["PATH", "ROWS", "BYTES", "PARTITION", "OFFSETS"]
    assert [line.split()[-1] for line in files[1:]] == ["0-9", "10-19", "20-29"] * 2
    older = lake("files", archive.path, "--version", 1, "--json").lines
    assert [json.loads(line)["offsets"] for line in older] == ["0-9", "0-9"]
    history = [json.loads(line) for line in lake("history", archive.path, "--json").lines]
    assert [each["version"] for each in history] == [3, 2, 1]
    assert {(each["operation"], each["added_rows"]) for each in history} == {("archive", 20)}
    assert len(lake("history", archive.path, "--limit", 2).lines) == 3


def test_rows_are_read_as_json(archive: LakeTable, tmp_path: Path) -> None:
    rows = lake("read", archive.path, "--limit", 2, "--columns", "offset,key,date,headers").lines
    assert json.loads(rows[0]) == {
        "offset": 0,
        "key": "key-0",
        "date": "2026-01-01",
        "headers": [{"key": "place", "value": "orders-0-0"}],
    }
    assert len(rows) == 2
    part = lake("read", archive.path, "--limit", 59)
    assert (len(part.lines), part.stderr) == (59, "59 of 60 rows; --limit shows more.\n")
    whole = lake("read", archive.path, "--version", 1)
    assert (len(whole.lines), whole.stderr) == (20, "")
    other = LakeTable(tmp_path / "other")
    write_rows(other, pa.table({"data": [b"\xff"], "map": [{"a": 1.5}]}))
    assert lake("read", other.path).lines == ['{"data:base64": "/w==", "map": {"a": 1.5}}']
    wrong = lake("read", archive.path, "--columns", "ofset")
    assert wrong.exit_code == 1
    assert wrong.stderr.startswith("headwater: The table has no column 'ofset'; it has 'topic'")


def test_compaction_and_vacuum_say_what_they_did(archive: LakeTable) -> None:
    before = sorted(lake("read", archive.path).lines)
    assert lake("compact", archive.path).stdout == "Joined 6 files into 2, with 60 rows.\n"
    assert lake("compact", archive.path).stdout == "There was nothing to join.\n"
    assert lake("vacuum", archive.path).stdout == "Removed 0 versions and 0 files: 0 bytes.\n"
    removed = lake("vacuum", archive.path, "--older-than-hours", 0).stdout
    assert removed.startswith("Removed 0 versions and 6 files: ")
    assert sorted(lake("read", archive.path).lines) == before
    assert lake("verify", "--deep", archive.path).exit_code == 0


def test_a_replay_is_run(archive: LakeTable, headwater_broker: RunningBroker) -> None:
    where = ("--bootstrap-server", headwater_broker.bootstrap)
    times = ("--from", "2026-01-01T00:05:00Z", "--until", 1767225600000 + 15 * 60_000)
    done = lake("replay", archive.path, "--target", "cli-again", *times, *where)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("20 records written to cli-again in ")
    wrong = lake("replay", archive.path, "--target", "cli-again", "--from", "noon", *where)
    assert wrong.exit_code == 2
    assert "'noon' is not a time" in wrong.stderr


@pytest.mark.parametrize("command", ["verify", "files", "history", "read", "compact", "vacuum"])
def test_a_table_that_is_not_there_is_told_in_a_sentence(tmp_path: Path, command: str) -> None:
    finished = lake(command, tmp_path / "nowhere")
    assert finished.exit_code == 1
    assert finished.stderr == f"headwater: There is no lake table at {tmp_path / 'nowhere'}.\n"
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    "command", ["verify", "files", "history", "read", "compact", "vacuum", "replay"]
)
def test_without_pyarrow_a_sentence_says_what_to_install(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    finished = lake(command, "somewhere", *(["--target", "x"] if command == "replay" else []))
    assert finished.exit_code == 1
    assert finished.stderr == (
        f"headwater: A lake needs the Python package pyarrow: {how_to_install('spark')}\n"
    )
