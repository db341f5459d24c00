import asyncio
import os
import signal
from types import SimpleNamespace

import pytest

from headwater.base.ids import TopicPartition
from headwater.broker.settings.static_settings import static_of
from headwater.cli.serve import broker_process
from headwater.storage.directories.log_directory import LoadProgress


class Exited(Exception):
    """Stands for the end of the process."""


def make_process() -> broker_process._BrokerProcess:
    return broker_process._BrokerProcess([static_of({})])


def test_the_first_signal_asks_and_the_second_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(code: int) -> None:
        raise Exited(code)

    monkeypatch.setattr(os, "_exit", leave)

    async def run() -> None:
        process = make_process()
        process._on_signal(signal.SIGTERM)
        assert process._stop.is_set()
        with pytest.raises(Exited, match="1"):
            process._on_signal(signal.SIGTERM)

    asyncio.run(run())


def test_loading_is_told_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    moments = iter([0.0, 1.9, 2.1, 2.2, 5.0])
    clock = SimpleNamespace(monotonic=lambda: next(moments))
    monkeypatch.setattr("headwater.cli.serve.broker_process.time", clock)
    process = make_process()
    for done in range(4):
        progress = LoadProgress(done, 1200, TopicPartition("orders", done), done == 3)
        process._show_progress(progress)
    assert capsys.readouterr().out.splitlines() == [
        "  loading     1 of 1,200 logs, loading orders-1",
        "  loading     3 of 1,200 logs, recovering orders-3",
    ]


def test_the_age_of_the_process_includes_its_imports() -> None:
    first = broker_process._process_age_s()
    assert 0 < first <= broker_process._process_age_s()
