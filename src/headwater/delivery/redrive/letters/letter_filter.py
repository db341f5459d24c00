"""Which letters are meant: all that every given condition holds for."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from headwater.delivery.redrive.letters.letter import Letter

_BINARY: Final = ("key",)


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterFilter:
    """Without any condition: all letters."""

    #: The group that could not handle it.
    group: str | None = None
    #: The topic that it was in at first.
    topic: str | None = None
    #: Its name on the whole way, such as `orders-0@1234`.
    origin: str | None = None
    #: A part of the error's class or message, in upper or lower case.
    error: str | None = None
    key: bytes | None = None
    #: Headers that it has, with exactly these values.
    headers: tuple[tuple[str, bytes], ...] = ()
    #: When it failed last: from the first on, and before the second, in ms since 1970.
    from_ms: int | None = None
    to_ms: int | None = None

    def matches(self, letter: Letter) -> bool:
        return (
            (self.group is None or letter.group == self.group)
            and (self.topic is None or self._is_from_topic(letter))
            and (self.origin is None or str(letter.origin) == self.origin)
            and (self.key is None or letter.record.key == self.key)
            and (self.error is None or self._has_error(letter))
            and all(header in letter.record.headers for header in self.headers)
            and self._is_in_time(letter)
        )

    def _is_from_topic(self, letter: Letter) -> bool:
        return letter.origin is not None and letter.origin.topic == self.topic

    def _has_error(self, letter: Letter) -> bool:
        wanted = (self.error or "").casefold()
        failure = letter.failure
        told = (failure.error_class, failure.error_message)
        return any(text is not None and wanted in text.casefold() for text in told)

    def _is_in_time(self, letter: Letter) -> bool:
        if self.from_ms is None and self.to_ms is None:
            return True
        failed_ms = letter.last_failure_ms
        if failed_ms is None:
            return False
        return (self.from_ms is None or failed_ms >= self.from_ms) and (
            self.to_ms is None or failed_ms < self.to_ms
        )

    def as_json(self) -> dict[str, Any]:
        """Only the conditions that are given."""
        document: dict[str, Any] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if value is None or value == ():
                continue
            if each.name in _BINARY:
                value = _text(value)
            elif each.name == "headers":
                value = [[name, _text(content)] for name, content in value]
            document[each.name] = value
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> LetterFilter:
        """The inverse; `ValueError`, `TypeError` or `KeyError` if it makes no sense."""
        given = dict(document)
        if "key" in given:
            given["key"] = base64.b64decode(given["key"], validate=True)
        if "headers" in given:
            given["headers"] = tuple(
                (str(name), base64.b64decode(content, validate=True))
                for name, content in given["headers"]
            )
        return cls(**given)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
