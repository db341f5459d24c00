"""What a letter becomes when it is sent back."""

from __future__ import annotations

import pytest

from headwater.client.failures.letter_headers import Failure, Wanted, letter_headers
from headwater.delivery.redrive.letters.letter import read_letter
from headwater.delivery.redrive.outgoing import finished, outgoing_of
from headwater.pipeline.compiled.sinks.source_letters import source_letter_headers
from tests.support.values.dead_letters import letter_record

MINE = ("trace", b"abc")


def test_a_row_that_could_not_be_written_goes_back_without_what_was_told_of_that() -> None:
    failure = Failure("query-7", "too large", "TooLarge", 5)
    wanted = Wanted("payments", 3, "7c0ffee", 12)
    letter = read_letter(letter_record(*letter_headers([MINE], failure, wanted=wanted)))
    assert outgoing_of(letter, "payments", None).headers == (MINE,)


@pytest.mark.parametrize("is_retried", [False, True])
def test_what_a_pipeline_could_not_decode_goes_back_as_it_was(is_retried: bool) -> None:
    row = {
        "headers": [{"key": MINE[0], "value": MINE[1]}],
        "problem": "the value is empty",
        "topic": "orders",
        "partition": 3,
        "offset": 1234,
        "timestamp_ms": 1,
        "failed_ms": 2,
        "misfit": None,
    }
    headers = source_letter_headers(row, "revenue", "in", "headwater-revenue", "")
    letter = read_letter(letter_record(*((each["key"], each["value"]) for each in headers)))
    sent = finished(outgoing_of(letter, "orders", 3), letter, is_retried=is_retried)
    at_once = (("headwater-retry-after", b"0ms"),) if is_retried else ()
    assert sent.headers == (
        MINE,
        ("headwater-origin", b"orders-3@1234"),
        ("headwater-redrives", b"1"),
        *at_once,
    )
