"""A process that appends batches to a lake table until it is killed: `PATH FIRST_BATCH`.

Prints the number of each batch after it was committed.
"""

import sys

import pyarrow as pa

from headwater.pipeline.lake.lake_table import LakeTable
from tests.support.spark.lakes import write_rows

WRITER = "process"
BATCH_ROWS = 3


def rows(batch_id: int) -> pa.Table:
    return pa.table({"batch": [batch_id] * BATCH_ROWS, "row": list(range(BATCH_ROWS))})


def main() -> None:
    table = LakeTable(sys.argv[1])
    batch_id = int(sys.argv[2])
    while True:
        write_rows(table, rows(batch_id), writer=WRITER, batch_id=batch_id)
        print(batch_id, flush=True)
        batch_id += 1


if __name__ == "__main__":
    main()
