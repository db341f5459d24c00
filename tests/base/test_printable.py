"""Names that somebody else chose neither write lines of their own nor steer a terminal."""

import io
import logging

import pytest

from headwater.base.printable import PrintableFormatter, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orders", "orders"),
        ("größe \u4e2d", "größe \u4e2d"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\x1b[31mred\x9b", "\\x1b[31mred\\x9b"),
        ("a\u2028b\u202ec", "a\\u2028b\\u202ec"),
        ("\0\x7f\ud800", "\\x00\\x7f\\ud800"),
        ("C:\\new", "C:\\new"),
    ],
)
def test_what_does_more_than_show_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert shown.encode().decode() == shown


def logged(message: str, *arguments: object, error: Exception | None = None) -> str:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(PrintableFormatter("%(levelname)s %(name)s: %(message)s"))
    record = logging.LogRecord(
        "headwater", logging.WARNING, __file__, 1, message, arguments, None, "here"
    )
    if error is not None:
        record.exc_info = (type(error), error, error.__traceback__)
    handler.emit(record)
    return stream.getvalue()


def test_a_record_is_one_line() -> None:
    name = "g\n2026-01-01 ERROR root: all is lost\x1b[2J"
    assert logged("The group %s is new", name) == (
        "WARNING headwater: The group g\\n2026-01-01 ERROR root: all is lost\\x1b[2J is new\n"
    )


def test_a_traceback_keeps_its_lines_and_none_of_them_passes_for_a_record() -> None:
    try:
        raise ValueError("no\nERROR root: forged\x1b[2J")
    except ValueError as error:
        text = logged("It failed", error=error)
    first, *rest = text.splitlines()
    assert first == "WARNING headwater: It failed"
    assert rest[0] == "  Traceback (most recent call last):"
    assert rest[-1] == "  ERROR root: forged\\x1b[2J"
    assert all(line.startswith("  ") for line in rest)
