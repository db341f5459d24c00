"""How `headwater produce` takes a line apart, by the properties of Kafka's console producer.

    parse.key=true                        key<TAB>value
    parse.headers=true                    name:value,name:value<TAB>value
    both                                  name:value,name:value<TAB>key<TAB>value

The separators can be changed, and a field that equals `null.marker` is null.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cli.options.properties import is_true, parse_properties

DEFAULTS: Final = {
    "parse.key": "false",
    "parse.headers": "false",
    "ignore.error": "false",
    "key.separator": "\t",
    "headers.delimiter": "\t",
    "headers.separator": ",",
    "headers.key.separator": ":",
    "null.marker": "",
}
_SHOWN_LENGTH: Final = 60


class ParsedLine(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class LineError(KafkaError):
    """A line that is not as the properties say."""

    code = ErrorCode.INVALID_RECORD


class LineFormat:
    """What the properties say about lines."""

    def __init__(self, assignments: Iterable[str]) -> None:
        properties = DEFAULTS | parse_properties(assignments, DEFAULTS)
        self.is_plain = not is_true(properties, "parse.key") and not is_true(
            properties, "parse.headers"
        )
        self._has_key = is_true(properties, "parse.key")
        self._has_headers = is_true(properties, "parse.headers")
        self._ignores_errors = is_true(properties, "ignore.error")
        self._key_separator = properties["key.separator"].encode()
        self._headers_delimiter = properties["headers.delimiter"].encode()
        self._headers_separator = properties["headers.separator"].encode()
        self._headers_key_separator = properties["headers.key.separator"].encode()
        marker = properties["null.marker"]
        self._null_marker = marker.encode() if marker else None

    def parse(self, line: bytes, line_number: int) -> ParsedLine:
        """The record that a line stands for; raises `LineError`."""
        headers: tuple[tuple[str, bytes | None], ...] = ()
        key = None
        rest = line
        if self._has_headers:
            found, separator, after = rest.partition(self._headers_delimiter)
            if separator:
                rest = after
                if found != self._null_marker:
                    headers = self._parse_headers(found, line, line_number)
            elif not self._ignores_errors:
                raise _fault("headers delimiter", line, line_number)
        if self._has_key:
            found, separator, after = rest.partition(self._key_separator)
            if separator:
                key, rest = self._or_null(found), after
            elif not self._ignores_errors:
                raise _fault("key separator", line, line_number)
        return ParsedLine(key, self._or_null(rest), headers)

    def _parse_headers(
        self, text: bytes, line: bytes, line_number: int
    ) -> tuple[tuple[str, bytes | None], ...]:
        headers = []
        for pair in text.split(self._headers_separator):
            name, separator, value = pair.partition(self._headers_key_separator)
            if separator:
                headers.append((name.decode(errors="surrogateescape"), self._or_null(value)))
            elif not self._ignores_errors:
                raise _fault("header key separator", line, line_number)
        return tuple(headers)

    def _or_null(self, field: bytes) -> bytes | None:
        return None if field == self._null_marker else field


def _fault(what: str, line: bytes, line_number: int) -> LineError:
    shown = line.decode(errors="replace")
    if len(shown) > _SHOWN_LENGTH:
        shown = shown[:_SHOWN_LENGTH] + "..."
    return LineError(f"There is no {what} in line {line_number}: {shown!r}.")
