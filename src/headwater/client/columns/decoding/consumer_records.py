"""Columns to the records that a consumer's user gets, each made by C code alone.

What is per record in Python costs more than all of the decoding, so there is no loop: columns
become lists, keys and values are cut by a comprehension each, and `map` makes the tuples.
"""

from collections.abc import Callable, Iterable
from itertools import chain, repeat
from typing import Any, TypeAlias

from headwater.client.columns.decoding.decoded_columns import BatchRun, RecordColumns
from headwater.client.columns.varint_arrays import Longs
from headwater.client.consumer.record import ConsumerRecord
from headwater.wire.records import TimestampType

#: Makes an object of a key's or value's bytes; null is not shown to it.
Deserialize: TypeAlias = Callable[[bytes], Any]

_new_tuple = tuple.__new__


def columns_to_records(
    topic: str,
    partition: int,
    columns: RecordColumns,
    *,
    deserialize_key: Deserialize | None = None,
    deserialize_value: Deserialize | None = None,
) -> list[ConsumerRecord]:
    """All records of the columns; cut those with `part` and `from_offset` first."""
    data = columns.data if isinstance(columns.data, bytes) else memoryview(columns.data)
    headers: Iterable[object] = (
        repeat(()) if columns.headers is None else columns.headers.to_tuples(data)
    )
    fields = zip(
        repeat(topic),
        repeat(partition),
        columns.offsets.tolist(),
        columns.timestamps.tolist(),
        _by_run(columns.runs, [run.timestamp_type for run in columns.runs]),
        _cut(data, columns.key_starts, columns.key_sizes, deserialize_key),
        _cut(data, columns.value_starts, columns.value_sizes, deserialize_value),
        headers,
        _by_run(columns.runs, [run.leader_epoch for run in columns.runs]),
        strict=False,
    )
    return list(map(_new_tuple, repeat(ConsumerRecord), fields))


def _cut(
    data: bytes | memoryview, starts: Longs, sizes: Longs, deserialize: Deserialize | None
) -> Iterable[Any]:
    """The fields at these places."""
    if not len(sizes):
        return ()
    smallest = int(sizes.min())
    if smallest < 0 and sizes.max() < 0:
        return repeat(None)
    bounds = zip(starts.tolist(), (starts + sizes).tolist(), strict=True)
    if isinstance(data, bytes):
        fields = [data[start:end] for start, end in bounds]
    else:
        fields = [data[start:end].tobytes() for start, end in bounds]
    if smallest >= 0:
        return fields if deserialize is None else map(deserialize, fields)
    present = zip(fields, sizes.tolist(), strict=True)
    if deserialize is None:
        return [None if size < 0 else field for field, size in present]
    return [None if size < 0 else deserialize(field) for field, size in present]


def _by_run(runs: tuple[BatchRun, ...], kinds: list[TimestampType] | list[int]) -> Iterable[object]:
    """What each batch's records have in common, for each record."""
    if len(set(kinds)) <= 1:
        return repeat(kinds[0] if kinds else None)
    return chain.from_iterable(
        [repeat(kind, run.record_count) for run, kind in zip(runs, kinds, strict=True)]
    )
