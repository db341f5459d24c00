"""The benchmark of audit and trace works from end to end; what it measures here means nothing."""

from pathlib import Path

import pytest

from bench.audit.__main__ import main


def test_the_whole_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--tiny", "--directory", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    for words in ("CPU of an append, audit on", "librdkafka, audit on", "trace, 100 %", "among"):
        assert words in shown
    assert "Not measured" not in shown
