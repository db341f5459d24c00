"""The ids of records in a lake table, where archives keep headers as they were."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from headwater.base.audit_id import AUDIT_HEADER, AuditId, decode_audit_id
from headwater.base.errors import InvalidConfigError
from headwater.base.extras import missing_package
from headwater.client.columns.arrow.library import load_arrow
from headwater.delivery.audit.topic_ids import IdPiece

if TYPE_CHECKING:
    import pyarrow

_HEADERS: Final = "headers"
_TOPIC: Final = "topic"


def need_arrow() -> None:
    """Raise a sentence that says what to install, before anything else is read."""
    if importlib.util.find_spec("pyarrow") is None:
        raise missing_package("A lake", "pyarrow", "spark")


def read_lake_ids(path: str, topic: str) -> Iterator[IdPiece]:
    """Those of a topic's records, in pieces, from the newest version of the table."""
    from headwater.pipeline.lake.lake_table import LakeTable

    table = LakeTable(path)
    names = table.snapshot().schema.names
    if _HEADERS not in names:
        raise InvalidConfigError(
            f"The lake table {path} has no column 'headers', so it has no ids. Archives of topics "
            "have one, unless they were made without."
        )
    columns = [_HEADERS, _TOPIC] if _TOPIC in names else [_HEADERS]
    reader = table.reader(columns)
    for file in table.files():
        for rows in reader.batches(file):
            if _TOPIC in columns:
                rows = rows.filter(_is_equal(rows.column(_TOPIC), topic))
            ids = _ids(rows)
            yield IdPiece(ids, len(rows) - len(ids), len(rows))


def _is_equal(column: pyarrow.ChunkedArray, text: str) -> pyarrow.ChunkedArray:
    arrow = load_arrow()
    return arrow.compute.equal(column.cast(arrow.string()), text)


def _ids(rows: pyarrow.Table) -> list[AuditId]:
    pc = load_arrow().compute
    column = rows.column(_HEADERS).combine_chunks()
    if not len(column) or column.null_count == len(column):
        return []
    fields = pc.list_flatten(column)
    is_named = pc.equal(pc.struct_field(fields, "key"), AUDIT_HEADER)
    contents = pc.struct_field(fields, "value").filter(is_named).to_pylist()
    records = pc.list_parent_indices(column).filter(is_named).to_pylist()
    ids: list[AuditId] = []
    last = -1
    for record, content in zip(records, contents, strict=True):
        # Of several in a record the first counts.
        if record != last and (audit_id := decode_audit_id(content)) is not None:
            ids.append(audit_id)
        last = record
    return ids
