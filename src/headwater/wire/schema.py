"""What a message class says about itself: its fields, and in which versions each is on the wire.

The classes under `wire/messages/` are generated, one for all versions of a message. A class holds
the union of the fields of all versions, each with a default, and a table, `FIELDS`, from which the
codec compiles readers and writers. They are plain classes with slots rather than dataclasses: a
dataclass takes about half a millisecond to create, and a broker imports some hundred of them.
"""

import uuid
from typing import Any, ClassVar, Final, NamedTuple

from headwater.base.region import Buffer as Buffer
from headwater.base.region import Records as Records

ZERO_UUID: Final = uuid.UUID(int=0)

# The first flexible version of a message that has none.
NEVER_FLEXIBLE: Final = 2**15

# Stands in a constructor for "a new empty list" or "a new struct with its defaults", which Python
# cannot write as a default; null has a meaning of its own.
NEW: Final[Any] = object()


class VersionRange(NamedTuple):
    """A run of versions, both ends included."""

    lowest: int
    highest: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.lowest <= version <= self.highest


class Field(NamedTuple):
    """One field of a struct; `kind` is the name of a Kafka type, or the class of a nested struct.

    The ranges are (lowest, highest) version, or None for "in no version".
    """

    name: str
    kind: "str | type[Struct]"
    versions: tuple[int, int]
    array: bool = False
    nullable: tuple[int, int] | None = None
    tag: int | None = None
    tagged: tuple[int, int] | None = None

    def exists_in(self, version: int) -> bool:
        return _within(version, self.versions)

    def is_nullable_in(self, version: int) -> bool:
        return _within(version, self.nullable)

    def is_tagged_in(self, version: int) -> bool:
        return _within(version, self.tagged)


class Struct:
    """A message or a part of one: equal to another by its fields, and shown by them."""

    __slots__ = ()

    FIELDS: ClassVar[tuple[Field, ...]] = ()

    # A constructor takes fields by keyword only, since their order is an accident of the versions.
    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, field.name) == getattr(other, field.name) for field in self.FIELDS)

    # They are mutable, so they have no hash.
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in self.FIELDS)
        return f"{type(self).__name__}({shown})"


class Message(Struct):
    """A whole request, response, or value inside another message's `bytes` field."""

    __slots__ = ()

    # The key of the request or response; -1 if the message belongs to no API.
    API_KEY: ClassVar[int] = -1
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0)
    FLEXIBLE_SINCE: ClassVar[int] = NEVER_FLEXIBLE


def _within(version: int, versions: tuple[int, int] | None) -> bool:
    return versions is not None and versions[0] <= version <= versions[1]
