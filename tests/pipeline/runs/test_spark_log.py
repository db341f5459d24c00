"""Spark's log goes to the directory of the run, unless somebody has decided about it."""

from pathlib import Path

import pytest

from headwater.pipeline.runs.spark_log import JAVA_OPTIONS, log_to_file


def test_the_log_is_a_file_of_the_run(tmp_path: Path) -> None:
    place = tmp_path / "a run $1"
    place.mkdir()
    found = log_to_file(place, {JAVA_OPTIONS: "-Xss4m"}, {JAVA_OPTIONS: "-Xss2m"})
    file = place / "spark-log4j2.properties"
    assert found == {JAVA_OPTIONS: f'-Xss4m "-Dlog4j2.configurationFile={file}"'}
    assert f"fileName = {tmp_path}/a run $$1/spark.log\n" in file.read_text()


def test_defaults_of_the_machine_are_kept(tmp_path: Path) -> None:
    found = log_to_file(tmp_path, {}, {JAVA_OPTIONS: "-Xss2m"})
    assert found[JAVA_OPTIONS].startswith("-Xss2m ")


@pytest.mark.parametrize("by_default", [True, False])
def test_what_somebody_else_decided_holds(tmp_path: Path, by_default: bool) -> None:
    theirs = {JAVA_OPTIONS: "-Dlog4j2.configurationFile=x"}
    assert log_to_file(tmp_path, {} if by_default else theirs, theirs if by_default else {}) == {}
    assert list(tmp_path.iterdir()) == []
