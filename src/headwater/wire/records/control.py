"""Control records: what brokers write between the data, and clients never show.

A control batch has attribute bit 5 and one record. Its key is a version and a type. A transaction
ends in each partition that it touched with a marker, a batch that is transactional too and carries
the transaction's producer id and epoch; the marker's value is a version and the epoch of the
coordinator that wrote it. Newer versions only ever add fields, so a reader takes those it knows.
"""

import struct
from enum import IntEnum
from typing import NamedTuple

from headwater.wire.records.batch import encode_batch
from headwater.wire.records.errors import InvalidRecordError
from headwater.wire.records.record import Record

_KEY_VERSION = 0
_MARKER_VERSION = 0
_KEY = struct.Struct(">hh")
_MARKER = struct.Struct(">hi")


class ControlType(IntEnum):
    """The second number of a control record's key.

    The types from 2 on are of KRaft's own log, and the last one is Headwater's: see `delayed`.
    """

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6
    DELAYED = 1000


_TYPES = {int(member): member for member in ControlType}


class EndTransactionMarker(NamedTuple):
    type: ControlType
    coordinator_epoch: int


def read_control_type(record: Record) -> ControlType:
    """The type that a control record's key names; one that is not known here is `UNKNOWN`."""
    if record.key is None or len(record.key) < _KEY.size:
        raise InvalidRecordError(
            f"The control record at offset {record.offset} has a key of "
            f"{len(record.key or b'')} bytes instead of {_KEY.size}."
        )
    version, code = _KEY.unpack_from(record.key)
    if version < 0:
        raise InvalidRecordError(
            f"The control record at offset {record.offset} has a key of version {version}."
        )
    return _TYPES.get(code, ControlType.UNKNOWN)


def decode_control_record(record: Record) -> EndTransactionMarker:
    """The end of a transaction that this record marks; any other control record is refused."""
    control_type = read_control_type(record)
    if control_type not in (ControlType.ABORT, ControlType.COMMIT):
        raise InvalidRecordError(
            f"The control record at offset {record.offset} is of type {control_type.name} "
            f"and ends no transaction."
        )
    if record.value is None or len(record.value) < _MARKER.size:
        raise InvalidRecordError(
            f"The transaction marker at offset {record.offset} has a value of "
            f"{len(record.value or b'')} bytes instead of {_MARKER.size}."
        )
    version, coordinator_epoch = _MARKER.unpack_from(record.value)
    if version < 0:
        raise InvalidRecordError(
            f"The transaction marker at offset {record.offset} is of version {version}."
        )
    return EndTransactionMarker(control_type, coordinator_epoch)


def encode_end_transaction_marker(
    control_type: ControlType,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp_ms: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytes:
    """The batch that ends a producer's transaction in a partition, by commit or abort."""
    if control_type not in (ControlType.ABORT, ControlType.COMMIT):
        raise InvalidRecordError(f"{control_type.name} does not end a transaction.")
    key = _KEY.pack(_KEY_VERSION, control_type)
    value = _MARKER.pack(_MARKER_VERSION, coordinator_epoch)
    return encode_batch(
        [Record(base_offset, timestamp_ms, key, value)],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
        leader_epoch=leader_epoch,
    )
