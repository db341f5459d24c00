"""Gives the rows of an Arrow batch their audit ids, as headers, for all rows at once.

A row's tail is the count of its headers and the headers. Ids are of one size, so those of all rows
are one array, and Arrow joins it with the headers that are there. A row that has an id already is
a copy, and keeps it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from headwater.base.audit_id import AUDIT_HEADER, AUDIT_ID_BYTES, TakenNumbers
from headwater.client.columns.arrow.library import binary_array, load_arrow, truth_array
from headwater.client.columns.encoding.arrow_rows import ArrowRows, join_rows
from headwater.client.columns.varint_arrays import Bytes
from headwater.wire.records.varint import encode_varint, read_raw_varint

if TYPE_CHECKING:
    import pyarrow

_HEADER_HEAD: Final = b"".join(
    (
        encode_varint(len(AUDIT_HEADER)),
        AUDIT_HEADER.encode(),
        encode_varint(AUDIT_ID_BYTES),
    )
)
#: As `base.audit_id` has it.
_ID_FORM: Final = np.dtype(
    [
        ("version", "u1"),
        ("process", ">u8"),
        ("partition", ">i4"),
        ("number", ">i8"),
        ("time_ms", ">i8"),
    ]
)
_VERSION: Final = 1
#: As a count has it.
_ONE: Final = encode_varint(1)[0]
#: From here on a count of headers, with one more, would take two bytes.
_SMALL_COUNT_LIMIT: Final = 63 << 1


#: Takes so many numbers of a partition.
TakeNumbers: TypeAlias = Callable[[int, int], TakenNumbers]


class Stretch(NamedTuple):
    """Rows of one partition, one behind the other."""

    partition: int
    first: int
    last: int


def with_ids(
    rows: ArrowRows, stretches: Iterable[Stretch], take: TakeNumbers, now_ms: int
) -> ArrowRows:
    """The rows with an id each, numbered in their order."""
    arrow = load_arrow()
    count = len(rows)
    tails = rows.tails
    has_id = np.zeros(count, np.bool_)
    if tails is not None:
        places = arrow.compute.find_substring(tails, pattern=_HEADER_HEAD)
        has_id = places.to_numpy(zero_copy_only=False) >= 0
    ids = np.zeros(count, _ID_FORM)
    ids["version"] = _VERSION
    ids["time_ms"] = now_ms if rows.timestamps is None else rows.timestamps
    for partition, first, last in stretches:
        new = np.flatnonzero(~has_id[first:last]) + first
        stream, number = take(partition, len(new))
        ids["process"][new] = stream.process
        ids["partition"][new] = stream.partition
        ids["number"][new] = number + np.arange(len(new))
    content = ids.view(np.uint8).reshape(count, AUDIT_ID_BYTES)
    head = np.frombuffer(_HEADER_HEAD, np.uint8)
    headers = np.hstack((np.broadcast_to(head, (count, len(head))), content))
    if tails is None:
        ones = np.full((count, 1), _ONE, np.uint8)
        return replace(rows, tails=_fixed(arrow, np.hstack((ones, headers))))
    added = _with_one_more(arrow, tails, headers)
    return replace(rows, tails=arrow.compute.if_else(truth_array(arrow, has_id), tails, added))


def _with_one_more(arrow: ModuleType, tails: pyarrow.Array, headers: Bytes) -> pyarrow.Array:
    """The tails with a header behind the others."""
    count = len(tails)
    _, bounds, data = tails.buffers()
    places = np.frombuffer(bounds, np.int32)[tails.offset : tails.offset + count + 1]
    content = np.frombuffer(data, np.uint8)[: places[-1]].copy()
    starts = places[:-1]
    if (content[starts] >= _SMALL_COUNT_LIMIT).any():
        return arrow.array(
            [_one_more(*pair) for pair in zip(tails.to_pylist(), headers, strict=True)],
            arrow.binary(),
        )
    content[starts] += _ONE
    return join_rows(
        arrow, binary_array(arrow, content.tobytes(), places, count), _fixed(arrow, headers)
    )


def _one_more(tail: bytes, header: npt.NDArray[np.uint8]) -> bytes:
    raw, position = read_raw_varint(tail, 0)
    return encode_varint((raw >> 1) + 1) + tail[position:] + header.tobytes()


def _fixed(arrow: ModuleType, rows: Bytes) -> pyarrow.Array:
    """Rows of one size as an array of bytes."""
    count, size = rows.shape
    bounds = np.arange(0, (count + 1) * size, size, dtype=np.int32)
    return binary_array(arrow, np.ascontiguousarray(rows).tobytes(), bounds, count)
