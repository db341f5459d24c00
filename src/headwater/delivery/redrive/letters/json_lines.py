"""Letters as lines of JSON, without loss: for people to read and edit, and to be taken back.

Keys, values and the values of headers are text where they are UTF-8, else `{"base64": "..."}`. What
the headers say of the failure stands beside them for whoever reads the line, and is not read back.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, NamedTuple

from headwater.base.message_id import MessageId
from headwater.client.consumer.record import ConsumerRecord
from headwater.delivery.redrive.letters.letter import Letter
from headwater.wire.records import Header, TimestampType


class LetterLineError(ValueError):
    """A line that is no letter, as a sentence."""


class StoredLetter(NamedTuple):
    """What is read back of a letter."""

    #: Where it lay; None for one that was written by hand.
    id: MessageId | None
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]

    def as_record(self) -> ConsumerRecord:
        """The letter as a consumer would get it."""
        topic, partition, offset = self.id or ("", 0, 0)
        return ConsumerRecord(
            topic,
            partition,
            offset,
            self.timestamp_ms,
            TimestampType.CREATE_TIME,
            self.key,
            self.value,
            self.headers,
            -1,
        )


def letter_document(letter: Letter) -> dict[str, Any]:
    """A letter as JSON, with all that is known of it."""
    record, failure = letter.record, letter.failure
    return {
        "id": str(letter.id),
        "timestamp_ms": record.timestamp,
        "key": shown_bytes(record.key),
        "value": shown_bytes(record.value),
        "headers": [[name, shown_bytes(value)] for name, value in record.headers],
        "failure": {
            "family": failure.family.value,
            "origin": None if letter.origin is None else str(letter.origin),
            "group": failure.group,
            "attempts": failure.attempts,
            "original_timestamp_ms": failure.original_timestamp_ms,
            "first_failure_ms": failure.first_failure_ms,
            "first_error_class": failure.first_error_class,
            "first_error_message": failure.first_error_message,
            "last_failure_ms": letter.last_failure_ms,
            "error_class": failure.error_class,
            "error_message": failure.error_message,
            "redrives": letter.redrives,
        },
    }


def letter_line(letter: Letter) -> str:
    return json.dumps(letter_document(letter), ensure_ascii=False)


def read_letter_line(line: str) -> StoredLetter:
    """The inverse; `LetterLineError` if it is none."""
    try:
        document = json.loads(line)
    except ValueError as error:
        raise LetterLineError(f"it is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise LetterLineError("it should be an object, with key, value and headers")
    try:
        place = document.get("id")
        headers = tuple(map(_header, document.get("headers") or ()))
        return StoredLetter(
            None if place is None else MessageId.parse(str(place)),
            int(document.get("timestamp_ms", -1)),
            _bytes(document.get("key")),
            _bytes(document.get("value")),
            headers,
        )
    except (TypeError, ValueError) as error:
        raise LetterLineError(str(error).rstrip(".")) from None


def shown_bytes(data: bytes | None) -> str | dict[str, str] | None:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _bytes(shown: object) -> bytes | None:
    match shown:
        case None:
            return None
        case str():
            return shown.encode()
        case {"base64": str(text)}:
            try:
                return base64.b64decode(text, validate=True)
            except binascii.Error:
                raise ValueError(f"{text[:40]!r} is not base64") from None
    raise ValueError('keys, values and headers are text, null or {"base64": "..."}')


def _header(pair: object) -> Header:
    match pair:
        case [str(name), value]:
            name.encode()
            return name, _bytes(value)
    raise ValueError("a header is a pair of a name and a value")
