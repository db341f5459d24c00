import pytest

from bench.audit.__main__ import main


def test_it_measures_what_the_audit_costs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--tiny"]) == 0
    assert "us a batch, goal: at most 2" in capsys.readouterr().out
