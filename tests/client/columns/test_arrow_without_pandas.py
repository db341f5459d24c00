"""Records go to Arrow and back without pandas, which pyarrow would import on many of its ways."""

import subprocess
import sys

_ROUND_TRIP = """
import sys

import pyarrow as pa

from headwater.base.reused_memory import Kept, ReusedMemory
from headwater.client.columns.arrow.batches import ArrowPart, columns_to_arrow
from headwater.client.columns.encoding.arrow_encoder import encode_arrow
from headwater.client.columns.arrow.library import binary_array, number_array
from headwater.client.columns.encoding.batch_assembly import assemble_batch
from headwater.client.columns.decoding.record_columns import decode_batches
from headwater.wire.records import Compression, read_batch_header
import numpy as np

values = binary_array(pa, b"abcdef", np.array([0, 2, 4, 6], np.int32), 3)
times = number_array(pa, np.array([7, 8, 9]))
rows = pa.RecordBatch.from_arrays([values, values, times], names=["key", "value", "timestamp"])
parts = []
for number, section in encode_arrow(
    rows,
    partition=None,
    partition_count=2,
    choose_partition=int,
    section_bytes_max=999,
    now_ms=1,
    memory=ReusedMemory(Kept(1 << 20, 1 << 20)),
):
    batch = assemble_batch(
        section.data,
        record_count=section.record_count,
        base_timestamp=section.base_timestamp,
        max_timestamp=section.max_timestamp,
        compression=Compression.NONE,
        compression_level=None,
        is_transactional=False,
    )
    batch.assign(-1, -1, -1)
    batch = bytes(batch)
    columns = decode_batches([(memoryview(batch), read_batch_header(batch))])
    parts.append(ArrowPart("orders", number, columns))
print(columns_to_arrow(parts).num_rows, "pandas" in sys.modules)
"""


def test_a_round_trip_does_not_import_pandas() -> None:
    result = subprocess.run(
        [sys.executable, "-c", _ROUND_TRIP], capture_output=True, text=True, timeout=60
    )
    assert (result.stdout.split(), result.stderr) == (["3", "False"], "")
