"""The log file: turned over by size or by others, and a disk that is full."""

import logging
import os
from pathlib import Path

import pytest

from headwater.base.settings import SettingError
from headwater.cli.serve.log_file import open_log_file


def write(handler: logging.Handler, *messages: str) -> None:
    for message in messages:
        handler.handle(logging.LogRecord("x", logging.INFO, __file__, 1, message, None, None))


def test_it_is_turned_over_when_it_is_full_and_old_ones_go(tmp_path: Path) -> None:
    handler = open_log_file(str(tmp_path / "log"), 110, 2)
    write(handler, *(f"line {number:03} {'x' * 40}" for number in range(9)))
    handler.close()
    files = {path.name: path.read_text().split()[1::3] for path in tmp_path.iterdir()}
    assert files == {"log": ["008"], "log.1": ["006", "007"], "log.2": ["004", "005"]}


def test_what_somebody_else_renames_is_begun_anew(tmp_path: Path) -> None:
    handler = open_log_file(str(tmp_path / "log"), 0, 1)
    write(handler, "before")
    (tmp_path / "log").rename(tmp_path / "log.old")
    write(handler, "after")
    handler.close()
    assert (tmp_path / "log.old").read_text() == "before\n"
    assert (tmp_path / "log").read_text() == "after\n"


@pytest.mark.parametrize("bytes_max", [0, 10_000])
def test_a_full_disk_costs_lines_and_is_told_once(
    bytes_max: int, capsys: pytest.CaptureFixture[str]
) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full here")
    handler = open_log_file("/dev/full", bytes_max, 1)
    write(handler, *(f"line {number}" for number in range(100)))
    handler.close()
    assert capsys.readouterr().err == (
        "headwater: The log file /dev/full cannot be written: No space left on device. "
        "A line is lost.\n"
    )


def test_when_there_is_room_again_lines_are_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = open_log_file(str(tmp_path / "log"), 10_000, 1)
    write(handler, "first")
    assert isinstance(handler, logging.FileHandler) and handler.stream is not None

    def write_half(text: str) -> int:
        with (tmp_path / "log").open("a") as file:
            file.write(text[:3])
        raise OSError(28, "No space left on device")

    handler.stream.close()
    handler.stream = _Broken(write_half)  # type: ignore[assignment]
    write(handler, "second", "third")
    handler.close()
    assert (tmp_path / "log").read_text() == "first\nsec\nthird\n"
    assert "A line is lost" in capsys.readouterr().err


class _Broken:
    """A stream on a full disk."""

    def __init__(self, write: object) -> None:
        self.write = write

    def flush(self) -> None:
        return

    def close(self) -> None:
        raise OSError(28, "No space left on device")

    def seek(self, *_: int) -> int:
        return 0

    def tell(self) -> int:
        return 0


def test_a_file_that_cannot_be_had_is_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"^The log file .*/absent/log cannot be written: No"):
        open_log_file(str(tmp_path / "absent" / "log"), 100, 1)
