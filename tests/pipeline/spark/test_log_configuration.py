"""The file that says what Spark logs is written once, and again if it is not the right one."""

from pathlib import Path

import pytest

from headwater.pipeline.spark.log_configuration import LOG_CONFIGURATION, log_configuration_file


def test_it_is_written_once_and_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))
    path = log_configuration_file()
    assert path.read_text() == LOG_CONFIGURATION
    written = path.stat().st_mtime_ns
    assert log_configuration_file().stat().st_mtime_ns == written
    path.write_text("rootLogger.level = debug\n")
    assert log_configuration_file().read_text() == LOG_CONFIGURATION
    assert len(list(path.parent.iterdir())) == 1
