"""The headers of a source's dead letter, as every dead letter has them."""

from __future__ import annotations

from typing import Any

from headwater.client.failures.letter_headers import PIPELINE_PREFIX
from headwater.pipeline.compiled.sinks.source_letters import source_letter_headers

SCHEMA = '{"type":"struct","fields":[{"name":"n","type":"long","nullable":true,"metadata":{}}]}'


def letter(schema_json: str = "", **changes: Any) -> list[tuple[str, bytes | None]]:
    row: dict[str, Any] = {
        "headers": [{"key": "trace", "value": b"t-1"}, {"key": "trace", "value": None}],
        "problem": "the value is empty",
        "topic": "orders",
        "partition": 3,
        "offset": 1234,
        "timestamp_ms": 1_700_000_000_000,
        "failed_ms": 1_800_000_000_000,
        "misfit": None,
    }
    found = source_letter_headers({**row, **changes}, "revenue", "in", "billing", schema_json)
    return [(each["key"], each["value"]) for each in found]


def test_every_header_of_a_letter() -> None:
    assert letter() == [
        ("trace", b"t-1"),
        ("trace", None),
        (f"{PIPELINE_PREFIX}reason", b"the value is empty"),
        (f"{PIPELINE_PREFIX}pipeline", b"revenue"),
        (f"{PIPELINE_PREFIX}source", b"in"),
        (f"{PIPELINE_PREFIX}topic", b"orders"),
        (f"{PIPELINE_PREFIX}partition", b"3"),
        (f"{PIPELINE_PREFIX}offset", b"1234"),
        (f"{PIPELINE_PREFIX}timestamp", b"1700000000000"),
        ("headwater-origin", b"orders-3@1234"),
        ("headwater-attempts", b"1"),
        ("headwater-first-failure", b"1800000000000"),
        ("headwater-last-failure", b"1800000000000"),
        ("headwater-error", b"the value is empty"),
        ("headwater-error-class", b"BadRecord"),
        ("__dlq.errors.topic", b"orders"),
        ("__dlq.errors.partition", b"3"),
        ("__dlq.errors.offset", b"1234"),
        ("__dlq.errors.group", b"billing"),
        ("__dlq.errors.delivery.count", b"1"),
        ("__dlq.errors.message", b"the value is empty"),
    ]


def test_a_record_without_headers_and_json_that_does_not_fit() -> None:
    headers = dict(letter(SCHEMA, headers=None, misfit=b'{"n": "much"}'))
    reason = b"the field 'n' is not of type BIGINT: \"much\""
    assert headers["headwater-error"] == headers["__dlq.errors.message"] == reason
    assert headers[f"{PIPELINE_PREFIX}reason"] == reason
    assert len(headers) == 19


def test_a_letter_that_was_sent_back_and_fails_again_has_each_header_once() -> None:
    first = [{"key": key, "value": value} for key, value in letter(headers=None)]
    first.append({"key": "headwater-redrives", "value": b"1"})
    again = letter(headers=first, offset=9999, failed_ms=1_900_000_000_000, problem="still bad")
    headers = dict(again)
    assert len(again) == len(headers) == 20
    # The name and the first failure stay, the rest is of now.
    assert headers["headwater-origin"] == b"orders-3@1234"
    assert headers["__dlq.errors.offset"] == b"1234"
    assert headers[f"{PIPELINE_PREFIX}offset"] == b"9999"
    assert headers["headwater-attempts"] == headers["__dlq.errors.delivery.count"] == b"2"
    assert headers["headwater-first-failure"] == b"1800000000000"
    assert headers["headwater-last-failure"] == b"1900000000000"
    assert headers["headwater-error"] == b"still bad"
    assert headers["headwater-redrives"] == b"1"


def test_headers_that_make_no_sense_are_told_anew() -> None:
    broken = [
        {"key": "headwater-origin", "value": b"nowhere"},
        {"key": "headwater-attempts", "value": b"many"},
        {"key": "headwater-first-failure", "value": None},
        {"key": "__dlq.errors.group", "value": b"other"},
    ]
    assert letter(headers=broken) == letter(headers=[])


def test_a_reason_is_bounded_and_any_text() -> None:
    headers = dict(letter(problem="\ud800" + "é" * 2000))
    error = headers["headwater-error"]
    assert error is not None
    assert 1000 < len(error) <= 1024
    assert error.decode().startswith("?é")
