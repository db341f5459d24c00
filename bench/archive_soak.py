"""`make soak ARGS="--archive 10000000"`: that many records archived by Spark, and every one proven.

A broker is filled with numbered records, the built-in pipeline `archive` is run on them as a user
would run it, and then the lake is examined twice: by `lake verify`, which looks at offsets, and by
reading every value and ticking its number off. What it took is printed: rows a second, and the most
memory that each kind of process had in use.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.machine import Machine
from bench.peak_memory import PeakMemory
from bench.table import markdown_table
from headwater import Admin, NewTopic, Producer
from headwater.java.processes import forget_process, kill_process, start_process
from headwater.pipeline.demo.broker_process import running_broker
from headwater.pipeline.lake.lake_table import LakeTable
from headwater.pipeline.lake.verify.verify import verify

T = TypeVar("T")

TOPIC: Final = "soak"
PARTITION_COUNT: Final = 4
VALUE_BYTES: Final = 100
#: Of each value; the rest is zeros.
_FILLING_BYTES: Final = 40
#: The golden ratio as a fraction of 2^64.
_ODD: Final = np.uint64(0x9E3779B97F4A7C15)
_RECORDS_PER_SEND: Final = 100_000
_MEBIBYTE: Final = 1 << 20


def soak_archive(record_count: int, *, master: str = "local[2]") -> int:
    """Archive and prove; the exit code is 0 if every record is there once."""
    with tempfile.TemporaryDirectory(prefix="headwater-soak-") as name:
        directory = Path(name)
        with running_broker(directory) as broker, PeakMemory(broker.process_id) as broker_memory:
            return _soak(record_count, master, directory, broker.address, broker_memory)


def _soak(
    record_count: int, master: str, directory: Path, address: str, broker_memory: PeakMemory
) -> int:
    lake = directory / "lake"
    _say(f"{record_count:,} records of {VALUE_BYTES} B are sent to {PARTITION_COUNT} partitions.")
    send_seconds, _ = _timed(lambda: _send(address, record_count))
    _say("The pipeline 'archive' runs on Spark, as with `headwater pipeline run archive --once`.")
    archive_seconds, spark_memory = _timed(lambda: _archive(address, lake, directory, master))
    _say("The archive is verified: its manifest, its files, its offsets, and against the topic.")
    table = LakeTable(lake)
    verify_seconds, findings = _timed(lambda: verify(table, bootstrap_servers=address))
    _say("Every value is read, and its number ticked off.")
    problems = [finding.sentence for finding in findings if finding.is_problem]
    problems += count_problems(_seen_counts(table, record_count))
    in_java, in_python = (spark_memory.bytes_of(kind) for kind in ("java", "python"))
    rows = [
        ("sending", f"{record_count / send_seconds:,.0f} records/s"),
        ("archiving, with the start of Spark", f"{record_count / archive_seconds:,.0f} records/s"),
        ("verifying", f"{record_count / verify_seconds:,.0f} records/s"),
        ("the archive", f"{len(table.files())} files, {_megabytes(table.snapshot().size_bytes)}"),
        ("memory of Spark's Java, peak", _megabytes(in_java)),
        ("memory of Spark's Python processes together, peak", _megabytes(in_python)),
        ("memory of the broker, peak", _megabytes(broker_memory.bytes_of("python"))),
    ]
    print(Machine.describe(str(directory)), end="\n\n")
    print("\n".join(markdown_table(["What", "Figure"], rows)))
    for problem in problems:
        print(f"WRONG: {problem}")
    if not problems:
        print(f"All {record_count:,} records are in the archive, each once.")
    return 1 if problems else 0


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / _MEBIBYTE:,.0f} MiB"


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    start = time.monotonic()
    result = work()
    return time.monotonic() - start, result


def _send(address: str, record_count: int) -> None:
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topics([NewTopic(TOPIC, PARTITION_COUNT, 1)])
    with Producer(bootstrap_servers=address, linger_ms=5, batch_size=1 << 20) as producer:
        for number, values in enumerate(numbered_values(record_count)):
            batch = pa.RecordBatch.from_arrays([values], ["value"])
            producer.send_arrow(TOPIC, batch, partition=number % PARTITION_COUNT)
        producer.flush()


def numbered_values(record_count: int) -> Iterator[pa.Array]:
    """All values: a number of eight bytes, and filling, the same in every run."""
    for first in range(0, record_count, _RECORDS_PER_SEND):
        count = min(_RECORDS_PER_SEND, record_count - first)
        data = np.zeros((count, VALUE_BYTES), dtype=np.uint8)
        numbers = np.arange(first, first + count, dtype=np.int64)
        data[:, :8] = numbers.astype("<i8").view(np.uint8).reshape(count, 8)
        data[:, 8 : 8 + _FILLING_BYTES] = _filling(numbers)
        fixed = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(VALUE_BYTES), count, [None, pa.py_buffer(data)]
        )
        yield fixed.cast(pa.binary())


def _filling(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """What follows a number: bytes that look like chance, so that they do not compress away."""
    places = np.arange(_FILLING_BYTES, dtype=np.uint64)
    mixed: npt.NDArray[np.uint64] = numbers.astype(np.uint64)[:, None] * _ODD + places
    mixed = (mixed ^ (mixed >> np.uint64(31))) * _ODD
    filling: npt.NDArray[np.uint8] = (mixed >> np.uint64(56)).astype(np.uint8)
    return filling


def _archive(address: str, lake: Path, directory: Path, master: str) -> PeakMemory:
    """Run the built-in pipeline in a process of its own, and watch its memory."""
    command = [
        *(sys.executable, "-m", "headwater", "pipeline", "run", "archive", "--once"),
        *("--bootstrap-server", address, "--state-dir", str(directory / "state")),
        *("--set", f"topics={TOPIC}", "--set", f"lake={lake}", "--master", master),
    ]
    with (directory / "pipeline.log").open("wb") as log:
        process = start_process(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        with PeakMemory(process.pid) as memory:
            code = process.wait()
    except BaseException:
        kill_process(process)
        raise
    forget_process(process)
    if code != 0:
        said = (directory / "pipeline.log").read_text(errors="replace")
        raise RuntimeError(f"The pipeline ended with exit code {code}:\n{said[-4000:]}")
    return memory


def _seen_counts(table: LakeTable, record_count: int) -> npt.NDArray[np.uint8]:
    """How often each number is in the archive; a strange value counts as none."""
    counts = np.zeros(record_count, dtype=np.uint8)
    reader = table.reader(columns=["value"])
    for file in table.files():
        for batch in reader.batches(file):
            for values in batch.column("value").chunks:
                np.add.at(counts, value_numbers(values, record_count), 1)
    return counts


def value_numbers(values: pa.Array, record_count: int) -> npt.NDArray[np.int64]:
    """The numbers of values that are as they were sent."""
    ends = np.frombuffer(values.buffers()[1], dtype=np.int32)
    ends = ends[values.offset : values.offset + len(values) + 1]
    starts = ends[:-1][np.diff(ends) == VALUE_BYTES]
    content = np.frombuffer(values.buffers()[2], dtype=np.uint8)
    data = content[starts[:, None] + np.arange(VALUE_BYTES)]
    numbers = np.ascontiguousarray(data[:, :8]).view("<i8").reshape(-1).astype(np.int64)
    is_filled = (data[:, 8 : 8 + _FILLING_BYTES] == _filling(numbers)).all(axis=1)
    sound = is_filled & ~data[:, 8 + _FILLING_BYTES :].any(axis=1)
    sound &= (numbers >= 0) & (numbers < record_count)
    found: npt.NDArray[np.int64] = numbers[sound]
    return found


def count_problems(counts: npt.NDArray[np.uint8]) -> list[str]:
    problems = []
    missing, repeated = np.flatnonzero(counts == 0), np.flatnonzero(counts > 1)
    if len(missing):
        problems.append(f"{len(missing):,} records are missing, the first is {missing[0]}.")
    if len(repeated):
        problems.append(f"{len(repeated):,} are there twice, the first is {repeated[0]}.")
    return problems
