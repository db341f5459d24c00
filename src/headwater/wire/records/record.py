"""A record as the rest of the program sees it: absolute offset, absolute timestamp, plain bytes."""

from typing import NamedTuple, TypeAlias

#: Whatever a batch may be read from. Writing in place needs a bytearray or a writable memoryview.
Buffer: TypeAlias = bytes | bytearray | memoryview

#: The timestamp of a record that has none, which magic 0 could not store.
NO_TIMESTAMP = -1

#: A header's key and value. A key that is not UTF-8 keeps its bytes as surrogate escapes, so that
#: rewriting a batch never changes what a producer of another language wrote.
Header: TypeAlias = tuple[str, bytes | None]


class Record(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
