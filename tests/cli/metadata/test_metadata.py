"""`headwater metadata`, with embedded stores: what it says, and what it refuses in a sentence."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import pytest

from headwater.base.randomness import SeededRandom
from headwater.cluster.identity import establish_cluster_id, generate_broker_id
from headwater.cluster.secret import establish_cluster_secret
from tests.support.brokers.metadata_stores import open_sqlite
from tests.support.command import Finished, run_command


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """That of a broker which was started once, and has no topic."""

    async def make(directory: Path) -> None:
        store = await open_sqlite(directory)
        session = store.connect()
        await establish_cluster_id(session, "a-cluster", SeededRandom(1).uuid)
        await establish_cluster_secret(session, bytes)
        await generate_broker_id(session, 1_000)
        await store.close()

    directory = tmp_path / "data"
    directory.mkdir()
    asyncio.run(make(directory))
    return directory


def _metadata(*arguments: object) -> Finished:
    return run_command("metadata", *arguments)


def test_a_store_becomes_a_file_and_the_file_a_store(data_dir: Path, tmp_path: Path) -> None:
    file, other, again = tmp_path / "m.json", tmp_path / "new" / "data", tmp_path / "again.json"
    # A file that others may read is replaced by one that they may not.
    file.write_text("old")
    exported = _metadata("export", "--data-dir", data_dir, "-o", file)
    assert (exported.exit_code, exported.stderr) == (0, "")
    assert "cluster     a-cluster" in exported.stdout
    assert "holds the cluster's secret" in exported.stdout
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert _metadata("check", file).exit_code == 0

    imported = _metadata("import", file, "--data-dir", other)
    assert (imported.exit_code, imported.stderr) == (0, "")
    assert _metadata("export", "--data-dir", other, "-o", again).exit_code == 0
    changed = {"exported_at", "exported_from", "sha256"}
    lines = [
        [line for line in each.read_text().splitlines() if not changed & set(line.split('"'))]
        for each in (file, again)
    ]
    assert lines[0] == lines[1]
    assert any('"broker_ids_given": 1' in line for line in lines[0])


def test_a_store_that_is_not_empty_is_replaced_on_purpose_only(
    data_dir: Path, tmp_path: Path
) -> None:
    file, other = tmp_path / "m.json", tmp_path / "other"
    assert _metadata("export", "--data-dir", data_dir, "-o", file).exit_code == 0
    other.mkdir()

    async def make() -> None:
        store = await open_sqlite(other)
        await establish_cluster_id(store.connect(), "another", SeededRandom(1).uuid)
        await store.close()

    asyncio.run(make())
    refused = _metadata("import", file, "--data-dir", other)
    assert refused.exit_code == 1
    assert "is not empty" in refused.stderr and "--replace" in refused.stderr
    assert _metadata("import", file, "--data-dir", other, "--replace").exit_code == 0
    shown = _metadata("export", "--data-dir", other, "-o", tmp_path / "m2.json")
    assert "cluster     a-cluster" in shown.stdout


def test_what_makes_no_sense_is_told(data_dir: Path, tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    for places in ((), ("--data-dir", data_dir, "--zookeeper", "a:1")):
        usage = _metadata("export", "-o", file, *places)
        assert usage.exit_code == 2
        assert "either --data-dir or --zookeeper" in usage.stderr
    nowhere = _metadata("export", "--data-dir", tmp_path / "nowhere", "-o", file)
    assert nowhere.exit_code == 1
    assert "There is no" in nowhere.stderr
    assert not (tmp_path / "nowhere").exists()
    assert _metadata("check", file).stderr.endswith("No such file or directory.\n")
    file.write_text("{}")
    assert "no file that" in _metadata("check", file).stderr
    assert _metadata("import", file, "--data-dir", data_dir, "--replace").exit_code == 1
    bad = _metadata("export", "--zookeeper", "no:address:here", "-o", file)
    assert (bad.exit_code, "Traceback" in bad.stderr) == (1, False)
    assert len(bad.stderr.splitlines()) == 1
