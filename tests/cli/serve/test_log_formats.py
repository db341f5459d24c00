"""Lines of the log, as text and as JSON: whatever they hold, each stays one line."""

import json
import logging
import re
from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st

from headwater.base.log_origin import LogOrigin
from headwater.cli.serve.log_formats import complete, formatter_of

#: Also what breaks lines, steers terminals and is no character.
TEXTS = st.text(st.characters(), max_size=30) | st.sampled_from(
    ["a\nb", "\r\n", "\u2028\u2029\x85\x0b\x0c\x1c", "\x1b[31m", '"}{"', "\ud800", "\0", "%s"]
)


def line(form: str, message: str, *arguments: object, error: Exception | None = None) -> str:
    record = logging.LogRecord(
        "headwater.test", logging.INFO, __file__, 1, message, arguments, None
    )
    if error is not None:
        record.exc_info = (type(error), error, error.__traceback__)
    complete(record)
    return formatter_of(form).format(record)


def raised(text: str) -> Exception:
    try:
        raise ValueError(text)
    except ValueError as error:
        return error


@given(TEXTS, TEXTS)
def test_every_line_of_json_is_an_object(text: str, trouble: str) -> None:
    written = line("json", "Client %r, %s.", text, text, error=raised(trouble))
    assert len(written.splitlines()) == 1 and written.isascii() and written.isprintable()
    fields = json.loads(written)
    assert fields.keys() == {"time", "level", "logger", "message", "exception"}
    assert (fields["level"], fields["logger"]) == ("INFO", "headwater.test")
    assert fields["message"].startswith("Client ") and fields["message"].isprintable()
    assert "Traceback" in fields["exception"] and "ValueError" in fields["exception"]


@given(TEXTS, TEXTS)
def test_a_message_of_text_is_one_line_and_a_traceback_is_indented(text: str, trouble: str) -> None:
    first, *rest = line("text", "%s.", text, error=raised(trouble)).splitlines()
    assert re.fullmatch(r"\S+ INFO - headwater\.test: .*\.", first)
    assert rest and all(each.startswith("  ") and each.isprintable() for each in rest)


def test_the_time_tells_its_zone() -> None:
    in_text = datetime.fromisoformat(line("text", "x").split(" ", 1)[0])
    in_json = datetime.fromisoformat(json.loads(line("json", "x"))["time"])
    for moment in (in_text, in_json):
        assert moment.tzinfo is not None
        assert abs((datetime.now().astimezone() - moment).total_seconds()) < 60


def test_a_line_names_its_broker() -> None:
    origin = LogOrigin()
    origin.enter()
    assert "broker" not in json.loads(line("json", "x"))
    origin.broker_id = 3
    assert json.loads(line("json", "x"))["broker"] == 3
    assert " INFO broker-3 headwater.test: x" in line("text", "x")
