"""What a redrive shall do: which letters, where to, changed how, how fast."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from headwater.base.errors import InvalidConfigError
from headwater.delivery.redrive.letters.letter_filter import LetterFilter

MAX_REDRIVES_DEFAULT: Final = 3


class To(StrEnum):
    """Where letters go."""

    #: The topic that each was in at first: all groups that read it see it again.
    ORIGIN = "origin"
    #: The retry topic of the group that could not handle it: nobody else sees it again.
    RETRY = "retry"
    #: A topic that is named.
    TOPIC = "topic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """What is changed in each letter before it is sent."""

    value: bytes | None = None
    key: bytes | None = None
    #: Each replaces all headers of its name, or is added.
    headers: tuple[tuple[str, bytes], ...] = ()
    removed_headers: tuple[str, ...] = ()
    #: In values, as often as it is found: the first by the second.
    replaced: tuple[tuple[bytes, bytes], ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "value": _text(self.value),
            "key": _text(self.key),
            "headers": [[name, _text(value)] for name, value in self.headers],
            "removed_headers": list(self.removed_headers),
            "replaced": [[_text(old), _text(new)] for old, new in self.replaced],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Edits:
        return cls(
            value=_bytes(document["value"]),
            key=_bytes(document["key"]),
            headers=tuple((str(name), _bytes(value) or b"") for name, value in document["headers"]),
            removed_headers=tuple(map(str, document["removed_headers"])),
            replaced=tuple(
                (_bytes(old) or b"", _bytes(new) or b"") for old, new in document["replaced"]
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RedrivePlan:
    """Checked when it is made; `InvalidConfigError` says what makes no sense."""

    #: The dead-letter topic.
    source: str
    to: To
    #: The topic, for `To.TOPIC`.
    topic: str | None = None
    filter: LetterFilter = field(default_factory=LetterFilter)
    edits: Edits = field(default_factory=Edits)
    #: Letters a second; None for as fast as it goes.
    rate: float | None = None
    #: A letter that came back so often stays where it is.
    max_redrives: int = MAX_REDRIVES_DEFAULT
    #: Whether letters are sent that an earlier task has sent.
    again: bool = False
    #: Whether a function that the caller gives changes letters or leaves them out.
    has_function: bool = False

    def __post_init__(self) -> None:
        if (self.to is To.TOPIC) != (self.topic is not None):
            raise InvalidConfigError("Name the topic that letters go to, or another target.")
        if self.topic == self.source:
            raise InvalidConfigError(
                f"Letters of {self.source!r} cannot be sent to {self.source!r}: they would go "
                "round for ever."
            )
        if self.rate is not None and not 0 < self.rate < float("inf"):
            raise InvalidConfigError("The rate must be more than 0 letters a second.")
        if self.max_redrives < 0:
            raise InvalidConfigError("max_redrives cannot be less than 0.")

    @property
    def target(self) -> str:
        """For people."""
        return self.topic or f"({self.to.value})"

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "to": self.to.value,
            "topic": self.topic,
            "filter": self.filter.as_json(),
            "edits": self.edits.as_json(),
            "rate": self.rate,
            "max_redrives": self.max_redrives,
            "again": self.again,
            "has_function": self.has_function,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> RedrivePlan:
        """The inverse; `ValueError`, `TypeError`, `KeyError` or `KafkaError` for nonsense."""
        rate = document["rate"]
        return cls(
            source=str(document["source"]),
            to=To(document["to"]),
            topic=document["topic"],
            filter=LetterFilter.from_json(document["filter"]),
            edits=Edits.from_json(document["edits"]),
            rate=None if rate is None else float(rate),
            max_redrives=int(document["max_redrives"]),
            again=bool(document["again"]),
            has_function=bool(document["has_function"]),
        )


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text, validate=True)
