"""The demo itself, small, as a process: right on this machine and on a Spark cluster, and tidy."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from headwater.testing.spark_cluster import SparkCluster

TIMEOUT_S = 900.0
SMALL = ("--orders", "600", "--seconds", "3")


def run_demo(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headwater", "demo", *SMALL, *arguments],
        cwd=directory,
        env=with_temporary(directory),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )


def with_temporary(directory: Path) -> Mapping[str, str]:
    """The environment of a process whose temporary files can be counted."""
    (directory / "temporary").mkdir()
    return {**os.environ, "TMPDIR": str(directory / "temporary")}


def left_behind(directory: Path) -> list[Path]:
    return list((directory / "temporary").glob("headwater-demo-*"))


@pytest.mark.full
def test_the_demo_is_right_draws_its_chart_and_leaves_nothing_behind(tmp_path: Path) -> None:
    done = run_demo(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All 7 results are right" in done.stdout
    assert "WRONG" not in done.stdout
    assert (tmp_path / "headwater-demo.png").read_bytes().startswith(b"\x89PNG")
    assert not left_behind(tmp_path)


@pytest.mark.full
def test_a_standalone_cluster_runs_the_same_pipelines(tmp_path: Path) -> None:
    with SparkCluster(tmp_path / "cluster") as cluster:
        settings = [f"{name}={value}" for name, value in cluster.session_configs.items()]
        confs = [word for setting in settings for word in ("--conf", setting)]
        done = run_demo(tmp_path, "--master", cluster.master, *confs)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All 7 results are right" in done.stdout


@pytest.mark.full
def test_an_interrupted_demo_tidies_up(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "headwater", "demo", *SMALL],
        cwd=tmp_path,
        env=with_temporary(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("3. "):
                break
        assert left_behind(tmp_path)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130, errors
    assert "nothing is left behind" in errors
    assert not left_behind(tmp_path)
