"""`log dump` as JSON lines: one object for each thing, told apart by its field `type`.

Field names are the project's own, in snake case. Bytes are text where they are UTF-8, under their
plain name (`value`), and otherwise base64 under the name with `_base64` added; a decoder that was
asked for puts its result under `_hex` or `_base64` instead. An absent key or value is null. Of a
delayed record, key, value and headers are those that were sent.
Whatever is wrong is an object of type `fault` at the place where it was found.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Callable, Iterable
from typing import Any, Final, TextIO

from headwater.base.ids import topic_id_to_text
from headwater.storage.directories.broker_metadata import BrokerMetadata
from headwater.storage.indexes.hidden_index import HiddenStretch
from headwater.storage.indexes.offset_index import OffsetPosition
from headwater.storage.indexes.time_index import TimestampOffset
from headwater.storage.inspection.dump.items import (
    BatchItem,
    DumpItem,
    Fault,
    FileStart,
    IndexRemark,
    InvalidTail,
    LogStart,
    OffsetEntry,
    OffsetGap,
    QuorumSnapshotStart,
    RecordItem,
    TopicIdItem,
    TransactionEntry,
)
from headwater.storage.inspection.dump.lines import codec_name
from headwater.storage.leader_epochs import EpochEntry
from headwater.storage.producers.entry import ProducerEntry

Json = dict[str, Any]


class JsonDump:
    """Writes each item as a line to `out`."""

    def __init__(
        self,
        out: TextIO,
        *,
        print_data: bool = False,
        key_decoder: str = "string",
        value_decoder: str = "string",
        skip_batches: bool = False,
    ) -> None:
        self._out = out
        self._print_data = print_data
        self._key_decoder = key_decoder
        self._value_decoder = value_decoder
        self._skip_batches = skip_batches
        self.fault_count = 0

    def write(self, items: Iterable[DumpItem]) -> None:
        write = self._out.write
        for item in items:
            if isinstance(item, RecordItem):
                described = self._record(item)
            elif isinstance(item, BatchItem) and self._skip_batches:
                continue
            elif isinstance(item, Fault):
                self.fault_count += 1
                described = {"type": "fault", "kind": item.kind, **dataclasses.asdict(item)}
            else:
                described = _OBJECTS[type(item)](item)
            write(json.dumps(described, ensure_ascii=False) + "\n")

    def finish(self) -> None:
        """Nothing is held back: every fault stands where it was found."""

    def _record(self, item: RecordItem) -> Json:
        record = item.record
        described: Json = {
            "type": "record",
            "offset": record.offset,
            "timestamp": record.timestamp,
            "sequence": item.sequence,
            "key_size": -1 if record.key is None else len(record.key),
            "value_size": -1 if record.value is None else len(record.value),
        }
        if item.control_type is not None:
            described["control_type"] = item.control_type.name
        if item.marker is not None:
            described["coordinator_epoch"] = item.marker.coordinator_epoch
        if item.delayed is not None:
            each = item.delayed
            described |= {
                "kind": each.kind.name,
                "due_ms": each.due_ms,
                "original": each.original,
                "sent_ms": each.sent_ms,
                "expires_ms": each.expires_ms,
                **bytes_field("sender_id", each.sender_id),
            }
        if item.sent is not None:
            record = item.sent
        if self._print_data:
            described |= bytes_field("key", record.key, self._key_decoder)
            described |= bytes_field("value", record.value, self._value_decoder)
            described["headers"] = [
                bytes_field("key", name.encode("utf-8", "surrogateescape"))
                | bytes_field("value", value)
                for name, value in record.headers
            ]
        return described


def bytes_field(name: str, data: bytes | None, decoder: str = "string") -> Json:
    """One field: bytes under the name that tells how they are written."""
    if data is None:
        return {name: None}
    if decoder == "hex":
        return {f"{name}_hex": data.hex()}
    if decoder == "string":
        try:
            return {name: data.decode()}
        except UnicodeDecodeError:
            pass
    return {f"{name}_base64": base64.b64encode(data).decode()}


def _batch(item: BatchItem) -> Json:
    header = item.header
    return {
        "type": "batch",
        "position": item.position,
        "size": header.size_bytes,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "record_count": header.record_count,
        "base_sequence": header.base_sequence,
        "last_sequence": header.last_sequence,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "leader_epoch": header.leader_epoch,
        "is_transactional": header.is_transactional,
        "is_control": header.is_control,
        "delete_horizon_ms": header.delete_horizon_ms,
        "timestamp_type": None if header.magic == 0 else header.timestamp_type.name.lower(),
        "max_timestamp": header.max_timestamp,
        "magic": header.magic,
        "compression": codec_name(header),
        "crc": header.crc,
        "crc_is_valid": item.crc_is_valid,
    }


def _producer(entry: ProducerEntry) -> Json:
    described: Json = {
        "type": "producer",
        "producer_id": entry.producer_id,
        "producer_epoch": entry.producer_epoch,
        "coordinator_epoch": entry.coordinator_epoch,
        "transaction_first_offset": entry.transaction_first_offset,
        "last_timestamp": entry.last_timestamp,
    }
    for batch in entry.batches[:1]:
        described |= {
            "first_sequence": batch.first_sequence,
            "last_sequence": batch.last_sequence,
            "last_offset": batch.last_offset,
            "offset_delta": batch.offset_delta,
        }
    return described


def _metadata(metadata: BrokerMetadata) -> Json:
    directory_id = metadata.directory_id
    return {
        "type": "broker_metadata",
        "version": metadata.version,
        "node_id": metadata.node_id,
        "cluster_id": metadata.cluster_id,
        "directory_id": None if directory_id is None else topic_id_to_text(directory_id),
    }


def _fields(kind: str) -> Callable[[Any], Json]:
    """Items that are shown by their own field names."""
    return lambda item: {"type": kind, **item._asdict()}


_OBJECTS: Final[dict[type, Callable[[Any], Json]]] = {
    FileStart: _fields("file"),
    LogStart: _fields("log"),
    QuorumSnapshotStart: _fields("quorum_snapshot"),
    BatchItem: _batch,
    InvalidTail: _fields("invalid_tail"),
    IndexRemark: lambda item: {
        "type": "index_empty" if item.is_empty else "index_sane",
        "path": item.path,
    },
    HiddenStretch: _fields("hidden_stretch"),
    OffsetPosition: _fields("offset_index_entry"),
    TimestampOffset: _fields("time_index_entry"),
    TransactionEntry: lambda item: {
        "type": "aborted_transaction",
        "version": item.version,
        **item.transaction._asdict(),
    },
    ProducerEntry: _producer,
    EpochEntry: _fields("leader_epoch"),
    OffsetEntry: lambda item: {
        "type": "checkpoint_entry",
        **item.partition._asdict(),
        "offset": item.offset,
    },
    TopicIdItem: lambda item: {
        "type": "partition_metadata",
        "topic_id": topic_id_to_text(item.topic_id),
    },
    BrokerMetadata: _metadata,
    OffsetGap: _fields("offset_gap"),
}
