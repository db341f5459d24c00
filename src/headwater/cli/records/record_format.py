"""How `headwater consume` prints a record: as Kafka's console consumer does, or as JSON.

The text form has the fields that the properties ask for, in the order timestamp, partition, offset,
epoch, headers, key, value, with `key.separator` between them. Keys and values are written as the
bytes they are.

The JSON form is an object on a line. Bytes are text where they are UTF-8, and otherwise base64
under the name with `_base64` added.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from headwater.cli.options.properties import is_true, parse_properties
from headwater.client.consumer.record import ConsumerRecord
from headwater.wire.records import NO_TIMESTAMP, Header, TimestampType

DEFAULTS: Final = {
    "print.timestamp": "false",
    "print.partition": "false",
    "print.offset": "false",
    "print.epoch": "false",
    "print.headers": "false",
    "print.key": "false",
    "print.value": "true",
    "key.separator": "\t",
    "line.separator": "\n",
    "headers.separator": ",",
    "null.literal": "null",
}
NO_HEADERS: Final = b"NO_HEADERS"

#: The lines of some records.
FormatRecords: TypeAlias = Callable[["list[ConsumerRecord]"], bytes]

_TIMESTAMP_NAMES: Final = {
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}


class TextFormat:
    """Lines by the properties of Kafka's console consumer."""

    def __init__(self, assignments: Iterable[str]) -> None:
        properties = DEFAULTS | parse_properties(assignments, DEFAULTS)
        self._prints_timestamp = is_true(properties, "print.timestamp")
        self._prints_partition = is_true(properties, "print.partition")
        self._prints_offset = is_true(properties, "print.offset")
        self._prints_epoch = is_true(properties, "print.epoch")
        self._prints_headers = is_true(properties, "print.headers")
        self._prints_key = is_true(properties, "print.key")
        self._prints_value = is_true(properties, "print.value")
        self._key_separator = properties["key.separator"].encode()
        self._line_separator = properties["line.separator"].encode()
        self._headers_separator = properties["headers.separator"].encode()
        self._null = properties["null.literal"].encode()
        self._only_value = self._prints_value and not any(
            is_true(properties, name)
            for name in DEFAULTS
            if name.startswith("print.") and name != "print.value"
        )

    def __call__(self, records: list[ConsumerRecord]) -> bytes:
        end, null = self._line_separator, self._null
        if self._only_value:
            values = [null if record.value is None else record.value for record in records]
            return end.join(values) + end
        return b"".join(self._key_separator.join(self._fields(record)) + end for record in records)

    def _fields(self, record: ConsumerRecord) -> list[bytes]:
        fields: list[bytes] = []
        if self._prints_timestamp:
            if record.timestamp == NO_TIMESTAMP:
                fields.append(b"NO_TIMESTAMP")
            else:
                kind = _TIMESTAMP_NAMES[record.timestamp_type]
                fields.append(f"{kind}:{record.timestamp}".encode())
        if self._prints_partition:
            fields.append(b"Partition:%d" % record.partition)
        if self._prints_offset:
            fields.append(b"Offset:%d" % record.offset)
        if self._prints_epoch:
            fields.append(b"Epoch:%d" % record.leader_epoch)
        if self._prints_headers:
            fields.append(self._headers(record.headers))
        if self._prints_key:
            fields.append(self._null if record.key is None else record.key)
        if self._prints_value:
            fields.append(self._null if record.value is None else record.value)
        return fields

    def _headers(self, headers: tuple[Header, ...]) -> bytes:
        if not headers:
            return NO_HEADERS
        return self._headers_separator.join(
            name.encode("utf-8", "surrogateescape")
            + b":"
            + (self._null if value is None else value)
            for name, value in headers
        )


class JsonFormat:
    """An object for each record, with all there is to know."""

    def __call__(self, records: list[ConsumerRecord]) -> bytes:
        lines = []
        for record in records:
            described = {
                "topic": record.topic,
                "partition": record.partition,
                "offset": record.offset,
                "timestamp": record.timestamp,
                "timestamp_type": record.timestamp_type.name.lower(),
                **_bytes_field("key", record.key),
                **_bytes_field("value", record.value),
                "headers": [
                    _bytes_field("key", name.encode("utf-8", "surrogateescape"))
                    | _bytes_field("value", value)
                    for name, value in record.headers
                ],
            }
            lines.append(json.dumps(described, ensure_ascii=False) + "\n")
        return "".join(lines).encode()


def _bytes_field(name: str, data: bytes | None) -> dict[str, Any]:
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}
