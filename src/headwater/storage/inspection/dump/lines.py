"""The lines of `log dump`: each kind of item in the format of Apache Kafka's dumper.

A line is a run of fields, each as `name: value`; which fields there are tells what the line is.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any, Final

from headwater.base.ids import topic_id_to_text
from headwater.storage.directories.broker_metadata import BrokerMetadata
from headwater.storage.indexes.hidden_index import HiddenStretch
from headwater.storage.indexes.offset_index import OffsetPosition
from headwater.storage.indexes.time_index import TimestampOffset
from headwater.storage.inspection.dump.items import (
    BatchItem,
    FileStart,
    IndexRemark,
    InvalidTail,
    LogStart,
    OffsetEntry,
    QuorumSnapshotStart,
    RecordItem,
    TopicIdItem,
    TransactionEntry,
)
from headwater.storage.leader_epochs import EpochEntry
from headwater.storage.producers.entry import ProducerEntry
from headwater.wire.records import MAGIC_V2, BatchHeader, TimestampType, UnsupportedCompressionError
from headwater.wire.records.compression import COMPRESSION_MASK

#: What would end a line or steer a terminal, with its escape; a tab does neither.
_ESCAPES: Final = {
    chr(code): chr(code).encode("unicode_escape").decode()
    for code in (*range(9), *range(10, 32), *range(127, 160), 0x2028, 0x2029)
}
_CONTROL: Final = re.compile(f"[{re.escape(''.join(_ESCAPES))}]")


def readable(data: bytes) -> str:
    """Bytes as text on one line: what is not UTF-8, and control characters, as escapes."""
    text = data.decode("utf-8", "backslashreplace")
    return _CONTROL.sub(lambda match: _ESCAPES[match[0]], text)


DECODERS: Final[dict[str, Callable[[bytes], str]]] = {
    "string": readable,
    "hex": bytes.hex,
    "base64": lambda data: base64.b64encode(data).decode(),
}


def batch_line(item: BatchItem) -> str:
    header = item.header
    if header.magic >= MAGIC_V2:
        horizon = header.delete_horizon_ms
        line = (
            f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} "
            f"count: {header.record_count} baseSequence: {header.base_sequence} "
            f"lastSequence: {header.last_sequence} producerId: {header.producer_id} "
            f"producerEpoch: {header.producer_epoch} partitionLeaderEpoch: {header.leader_epoch} "
            f"isTransactional: {_flag(header.is_transactional)} "
            f"isControl: {_flag(header.is_control)} deleteHorizonMs: {_optional(horizon)}"
        )
    else:
        line = f"offset: {header.last_offset}"
    return (
        f"{line} position: {item.position} {_timestamp_type(header)}: {header.max_timestamp} "
        f"size: {header.size_bytes} magic: {header.magic} compresscodec: {codec_name(header)} "
        f"crc: {header.crc} isvalid: {_flag(item.crc_is_valid)}\n"
    )


def record_line(item: RecordItem) -> str:
    """A record without its data."""
    header, record = item.header, item.record
    key_size = -1 if record.key is None else len(record.key)
    value_size = -1 if record.value is None else len(record.value)
    line = (
        f"| offset: {record.offset} {_timestamp_type(header)}: {record.timestamp} "
        f"keySize: {key_size} valueSize: {value_size}"
    )
    if header.magic >= MAGIC_V2:
        names = ",".join(_header_name(name) for name, _ in record.headers)
        line += f" sequence: {item.sequence} headerKeys: [{names}]"
    elif header.attributes & COMPRESSION_MASK == 0:
        line += f" isValid: true crc: {header.crc}"
    if item.marker is not None:
        marker = item.marker
        line += f" endTxnMarker: {marker.type.name} coordinatorEpoch: {marker.coordinator_epoch}"
    elif item.control_type is not None:
        line += f" controlType: {item.control_type.name}({int(item.control_type)})"
    if item.delayed is not None:
        each = item.delayed
        line += (
            f" kind: {each.kind.name} due: {each.due_ms} original: {each.original} "
            f"sent: {each.sent_ms} expires: {each.expires_ms} "
            f"senderId: {readable(each.sender_id)}"
        )
    return line


def codec_name(header: BatchHeader) -> str:
    try:
        return header.compression.name.lower()
    except UnsupportedCompressionError:
        return f"unknown({header.attributes & COMPRESSION_MASK})"


def _timestamp_type(header: BatchHeader) -> str:
    if header.magic == 0:
        return "NoTimestampType"
    append_time = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    return "LogAppendTime" if append_time else "CreateTime"


def _producer_line(entry: ProducerEntry) -> str:
    line = (
        f"producerId: {entry.producer_id} producerEpoch: {entry.producer_epoch} "
        f"coordinatorEpoch: {entry.coordinator_epoch} "
        f"currentTxnFirstOffset: {_optional(entry.transaction_first_offset)} "
        f"lastTimestamp: {entry.last_timestamp}"
    )
    for batch in entry.batches[:1]:
        line += (
            f" firstSequence: {batch.first_sequence} lastSequence: {batch.last_sequence} "
            f"lastOffset: {batch.last_offset} offsetDelta: {batch.offset_delta} "
            f"timestamp: {batch.timestamp}"
        )
    return line


def _transaction_line(entry: TransactionEntry) -> str:
    transaction = entry.transaction
    return (
        f"version: {entry.version} producerId: {transaction.producer_id} "
        f"firstOffset: {transaction.first_offset} lastOffset: {transaction.last_offset} "
        f"lastStableOffset: {transaction.last_stable_offset}"
    )


def _hidden_line(stretch: HiddenStretch) -> str:
    return (
        f"hiddenFrom: {stretch.first_offset} hiddenUpTo: {stretch.next_offset - 1} "
        f"position: {stretch.position} end: {stretch.end} largestTime: {stretch.largest_ms}"
    )


def _log_line(start: LogStart) -> str:
    offset = start.starting_offset
    return f"Log starting offset: {'unknown' if offset is None else offset}"


def _quorum_line(start: QuorumSnapshotStart) -> str:
    if start.end_offset is None:
        return "KRaft bootstrap snapshot"
    return f"Snapshot end offset: {start.end_offset}, epoch: {start.epoch}"


def _metadata_line(metadata: BrokerMetadata) -> str:
    line = f"version: {metadata.version}"
    if metadata.node_id is not None:
        line += f" nodeId: {metadata.node_id}"
    if metadata.cluster_id is not None:
        line += f" clusterId: {metadata.cluster_id}"
    if metadata.directory_id is not None:
        line += f" directoryId: {topic_id_to_text(metadata.directory_id)}"
    return line


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _optional(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def _header_name(name: str) -> str:
    return readable(name.encode("utf-8", "surrogateescape"))


LINES: Final[dict[type, Callable[[Any], str]]] = {
    FileStart: lambda item: f"Dumping {item.path}",
    LogStart: _log_line,
    QuorumSnapshotStart: _quorum_line,
    InvalidTail: lambda item: f"Found {item.size} invalid bytes at the end of {item.name}",
    IndexRemark: lambda item: (
        f"{item.path} is empty." if item.is_empty else f"{item.path} passed sanity check."
    ),
    OffsetPosition: lambda item: f"offset: {item.offset} position: {item.position}",
    TimestampOffset: lambda item: f"timestamp: {item.timestamp} offset: {item.offset}",
    TransactionEntry: _transaction_line,
    HiddenStretch: _hidden_line,
    ProducerEntry: _producer_line,
    EpochEntry: lambda item: f"epoch: {item.epoch} startOffset: {item.start_offset}",
    OffsetEntry: lambda item: (
        f"topic: {item.partition.topic} partition: {item.partition.partition} offset: {item.offset}"
    ),
    TopicIdItem: lambda item: f"version: 0 topicId: {topic_id_to_text(item.topic_id)}",
    BrokerMetadata: _metadata_line,
}
