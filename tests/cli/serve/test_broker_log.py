"""The log of a process: a thread writes it, and nobody waits for that thread for long."""

import json
import logging
import queue
import threading
from pathlib import Path

import pytest

from headwater.base.settings import SettingError
from headwater.cli.serve import broker_log as module
from headwater.cli.serve.broker_log import LogIntake, LogOptions, LogWriter, broker_log

LOGGER = logging.getLogger("headwater.test_broker_log")


class _Slow(logging.Handler):
    """Writes nothing until it may."""

    def __init__(self) -> None:
        super().__init__()
        self.has_begun = threading.Event()
        self.may_write = threading.Event()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.has_begun.set()
        assert self.may_write.wait(30)
        self.messages.append(record.getMessage())


def record(message: str) -> logging.LogRecord:
    return logging.LogRecord("x", logging.INFO, __file__, 1, message, None, None)


def test_all_that_was_logged_is_in_the_file_in_the_end(tmp_path: Path) -> None:
    root = logging.getLogger()
    before = (root.level, list(root.handlers))
    options = LogOptions(level="INFO", format="json", path=str(tmp_path / "log"))
    with broker_log(options):
        LOGGER.debug("too little to tell")
        for number in range(500):
            LOGGER.info("line %d", number)
        try:
            raise ValueError("two\nlines")
        except ValueError:
            LOGGER.exception("it %s", "failed")
    assert (root.level, root.handlers) == before
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [line["message"] for line in lines] == [*(f"line {n}" for n in range(500)), "it failed"]
    assert "exception" not in lines[0]
    assert lines[-1]["exception"].endswith("ValueError: two\nlines")


def test_whoever_logs_does_not_wait_and_what_is_too_much_is_counted() -> None:
    lines: queue.Queue[logging.LogRecord] = queue.Queue(3)
    target = _Slow()
    intake = LogIntake(lines)
    writer = LogWriter(lines, target, intake)
    writer.start()
    intake.handle(record("0"))
    assert target.has_begun.wait(30)
    for number in range(1, 10):
        intake.handle(record(str(number)))
    target.may_write.set()
    writer.finish()
    told = "6 lines were dropped: the log is written slowly."
    assert target.messages == ["0", told, "1", "2", "3"]


def test_an_end_does_not_wait_forever_for_a_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CLOSE_S_MAX", 0.05)
    lines: queue.Queue[logging.LogRecord] = queue.Queue(1)
    target = _Slow()
    intake = LogIntake(lines)
    writer = LogWriter(lines, target, intake)
    writer.start()
    intake.handle(record("0"))
    assert target.has_begun.wait(30)
    intake.handle(record("1"))
    writer.finish()
    assert target.messages == []
    target.may_write.set()


def test_a_file_that_cannot_be_had_leaves_logging_as_it_was(tmp_path: Path) -> None:
    before = list(logging.getLogger().handlers)
    with (
        pytest.raises(SettingError, match="cannot be written"),
        broker_log(LogOptions(path=str(tmp_path))),
    ):
        pass
    assert logging.getLogger().handlers == before
