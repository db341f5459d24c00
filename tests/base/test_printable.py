"""Names that somebody else chose neither write lines of their own nor steer a terminal."""

import io
import logging

import pytest

from headwater.base.printable import PrintableFormatter, listed, printable, shortened


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


def test_lists_and_long_names_take_a_bounded_place() -> None:
    assert listed([]) == ""
    assert listed(["a", "b"]) == "a, b"
    assert listed(range(10)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9"
    assert listed(range(1_234), 2) == "0, 1 and 1,232 more"
    assert shortened("x" * 100) == "x" * 100
    assert shortened("x" * 101) == "x" * 100 + "..."
