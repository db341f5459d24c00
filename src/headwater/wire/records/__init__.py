"""Kafka's record batches: bytes to records and back, and the header-only view of the hot path.

`batch_header` is for whoever stores and serves batches without looking into them, `batch` for
whoever wants records, `control` for transaction markers, `legacy` and `up_conversion` for the
formats before Kafka 0.11. Reading raises the errors of `errors` and nothing else, whatever the
bytes are, and allocates no more than they justify.
"""

from headwater.wire.records.batch import (
    decode_batch,
    decode_records,
    encode_batch,
    read_section,
    recompress_batch,
)
from headwater.wire.records.batch_header import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_V2,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchHeader,
    crc_is_valid,
    iter_batch_headers,
    patch_batch,
    patch_create_time,
    patch_log_append_time,
    patch_max_timestamp,
    read_batch_header,
    validate_batch,
)
from headwater.wire.records.compression import (
    DECOMPRESSED_BYTES_MAX,
    Compression,
    compress,
    decompress,
)
from headwater.wire.records.control import (
    ControlType,
    EndTransactionMarker,
    decode_control_record,
    encode_end_transaction_marker,
    read_control_type,
)
from headwater.wire.records.errors import (
    CorruptRecordError,
    DecompressedTooLargeError,
    InvalidRecordError,
    UnsupportedCompressionError,
)
from headwater.wire.records.legacy import MAGIC_V0, MAGIC_V1, encode_legacy
from headwater.wire.records.record import NO_TIMESTAMP, Buffer, Header, Record
from headwater.wire.records.timestamp_type import TimestampType
from headwater.wire.records.up_conversion import convert_to_v2

__all__ = [
    "DECOMPRESSED_BYTES_MAX",
    "HEADER_SIZE",
    "LOG_OVERHEAD",
    "MAGIC_V0",
    "MAGIC_V1",
    "MAGIC_V2",
    "NO_PRODUCER_ID",
    "NO_SEQUENCE",
    "NO_TIMESTAMP",
    "BatchHeader",
    "Buffer",
    "Compression",
    "ControlType",
    "CorruptRecordError",
    "DecompressedTooLargeError",
    "EndTransactionMarker",
    "Header",
    "InvalidRecordError",
    "Record",
    "TimestampType",
    "UnsupportedCompressionError",
    "compress",
    "convert_to_v2",
    "crc_is_valid",
    "decode_batch",
    "decode_control_record",
    "decode_records",
    "decompress",
    "encode_batch",
    "encode_end_transaction_marker",
    "encode_legacy",
    "iter_batch_headers",
    "patch_batch",
    "patch_create_time",
    "patch_log_append_time",
    "patch_max_timestamp",
    "read_batch_header",
    "read_control_type",
    "read_section",
    "recompress_batch",
    "validate_batch",
]
