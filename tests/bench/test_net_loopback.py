import pytest

from bench import net_loopback


def test_every_row_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert net_loopback.main(["--rounds", "1", "--scale", "1"]) == 0
    table = capsys.readouterr().out
    assert "small requests per CPU second" in table
    assert "requests of 1024 KiB" in table
    assert table.count("read and write:") == 7
