"""The Python of Spark's workers runs without Spark's archives, and is otherwise the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headwater.pipeline.spark.quick_python import quick_python


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("", ""),
        ("/spark/python/lib/pyspark.zip", ""),
        (
            "/spark/python/lib/pyspark.zip:/spark/python/lib/py4j-0.10.9.9-src.zip:/spark/jars/*",
            "/spark/jars/*",
        ),
        ("/a b:/spark/python/lib/pyspark.zip:/$c", "/a b:/$c"),
        ("/mine/pyspark.zip:/python/lib/x.zip", "/mine/pyspark.zip:/python/lib/x.zip"),
    ],
)
def test_only_the_archives_are_taken_off_the_path(
    given: str, kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", given)
    program = "import os, sys; print(os.environ['PYTHONPATH'], sys.executable, sys.argv[1:])"
    script = quick_python(sys.executable)
    done = subprocess.run(
        [script, "-S", "-c", program, "a b", "", "$x"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{kept} {sys.executable} ['a b', '', '$x']\n"


def test_the_script_is_made_once_for_each_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))
    first = quick_python("/one/python")
    written = first.stat().st_mtime_ns
    assert quick_python("/one/python").stat().st_mtime_ns == written
    assert quick_python("/two/python") != first
    assert len(list(first.parent.iterdir())) == 2
