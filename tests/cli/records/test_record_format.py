import json

import pytest

from headwater.cli.records.record_format import JsonFormat, TextFormat
from headwater.client.consumer.record import ConsumerRecord
from headwater.wire.records import Header, TimestampType


def record(
    offset: int,
    timestamp: int,
    key: bytes | None,
    value: bytes | None,
    headers: tuple[Header, ...] = (),
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
) -> ConsumerRecord:
    return ConsumerRecord("orders", 3, offset, timestamp, timestamp_type, key, value, headers, 9)


RECORDS = [
    record(5, 1234, b"k", b"v", (("a", b"1"), ("b", None))),
    record(6, -1, None, None),
    record(7, 1236, b"\xff", b"\x00\xfe"),
]


@pytest.mark.parametrize(
    ("properties", "printed"),
    [
        ([], b"v\nnull\n\x00\xfe\n"),
        (["print.key=true"], b"k\tv\nnull\tnull\n\xff\t\x00\xfe\n"),
        (["print.value=false"], b"\n\n\n"),
        (["print.key=true", "print.value=false", "null.literal=-"], b"k\n-\n\xff\n"),
        (["line.separator=|", "null.literal=N"], b"v|N|\x00\xfe|"),
        (
            ["print.headers=true", "headers.separator=;", "print.value=false"],
            b"a:1;b:null\nNO_HEADERS\nNO_HEADERS\n",
        ),
        (
            [
                "print.timestamp=true",
                "print.partition=true",
                "print.offset=true",
                "print.epoch=true",
                "print.value=false",
                "key.separator= ",
            ],
            b"CreateTime:1234 Partition:3 Offset:5 Epoch:9\n"
            b"NO_TIMESTAMP Partition:3 Offset:6 Epoch:9\n"
            b"CreateTime:1236 Partition:3 Offset:7 Epoch:9\n",
        ),
    ],
)
def test_text(properties: list[str], printed: bytes) -> None:
    assert TextFormat(properties)(RECORDS) == printed


def test_the_brokers_time_is_told_as_such() -> None:
    stamped = record(5, 1234, b"k", b"v", timestamp_type=TimestampType.LOG_APPEND_TIME)
    printed = TextFormat(["print.timestamp=true"])([stamped])
    assert printed == b"LogAppendTime:1234\tv\n"


def test_json() -> None:
    lines = JsonFormat()(RECORDS).splitlines()
    first, second, third = map(json.loads, lines)
    assert first == {
        "topic": "orders",
        "partition": 3,
        "offset": 5,
        "timestamp": 1234,
        "timestamp_type": "create_time",
        "key": "k",
        "value": "v",
        "headers": [{"key": "a", "value": "1"}, {"key": "b", "value": None}],
    }
    assert (second["key"], second["value"], second["headers"]) == (None, None, [])
    assert "value" not in third
    assert (third["key_base64"], third["value_base64"]) == ("/w==", "AP4=")
