"""Points at which tests stop a process: off unless asked for, and once only."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from headwater.pipeline.sink.exactly_once.halt_points import HALT_POINTS, VARIABLE, halt_at
from tests.support.waiting import eventually


def test_nobody_halts_unless_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "after-decision.armed").write_text("3")
    monkeypatch.delenv(VARIABLE, raising=False)
    for point in HALT_POINTS:
        halt_at(point, 3)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    halt_at("before-decision", 3)
    halt_at("after-decision", 2)
    assert [found.name for found in tmp_path.iterdir()] == ["after-decision.armed"]


def test_the_first_one_halts_until_it_is_let_go(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    (tmp_path / "after-write.armed").write_text("7")
    halted = threading.Thread(target=halt_at, args=("after-write", 7))
    halted.start()
    marker = tmp_path / "after-write.halted"
    eventually(marker.exists)
    assert marker.read_text() == str(os.getpid())
    halt_at("after-write", 7)
    assert halted.is_alive()
    (tmp_path / "after-write.go").touch()
    halted.join(20)
    assert not halted.is_alive()
