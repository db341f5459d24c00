"""What a delivered message costs beside an ordinary record: calls that write, and bytes."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from bench.broker.process_usage import cpu_seconds
from bench.broker.raw_client import RawClient, wait_until
from bench.delay.load import due_batches, now_ms, produce
from bench.delay.run import Run
from bench.delay.sizes import RECORD_SIZE_BYTES
from bench.rounds import Comparison
from bench.table import Row
from headwater.testing.broker_process import BrokerProcess
from headwater.wire.records import Record, encode_batch

_BATCH_COUNT = 1_000


class _Written(NamedTuple):
    """Per record."""

    calls: float
    bytes: float
    cpu_us: float


def measure(run: Run) -> None:
    run.attempt("Writes per delivered message", lambda: _add_rows(run))


def _add_rows(run: Run) -> None:
    with run.broker() as broker:
        ordinary = _ordinary(run, broker)
        delayed = _delayed(run, broker)
    note = f"records of {RECORD_SIZE_BYTES} bytes in batches of {_BATCH_COUNT:,}"
    for what, unit, ours, theirs in (
        ("Calls that write, per record", "calls", delayed.calls, ordinary.calls),
        ("Bytes written, per record", "bytes", delayed.bytes, ordinary.bytes),
        ("The broker's CPU time, per record", "us", delayed.cpu_us, ordinary.cpu_us),
    ):
        values = Comparison([ours], [theirs])
        run.results.rows.append(Row.compared(what, unit, values, "ordinary", note=note))


def _ordinary(run: Run, broker: BrokerProcess) -> _Written:
    topic = run.topic(broker, is_delayed=False)
    count = run.sizes.counted_count
    payload = b"x" * RECORD_SIZE_BYTES
    with RawClient(broker.port) as client, _Counted(broker, count) as counted:
        for first in range(0, count, _BATCH_COUNT):
            records = [
                Record(number, now_ms(), None, payload)
                for number in range(min(_BATCH_COUNT, count - first))
            ]
            produce(client, topic, 0, encode_batch(records))
    return counted.written


def _delayed(run: Run, broker: BrokerProcess) -> _Written:
    """From the first append to the last copy."""
    topic = run.topic(broker, is_delayed=True)
    count = run.sizes.counted_count
    with RawClient(broker.port) as client, _Counted(broker, count) as counted:
        for batch in due_batches([now_ms() + 3_000 + number // 10 for number in range(count)]):
            produce(client, topic, 0, batch)
        # Behind what was wrapped come as many copies.
        wait_until(lambda: client.record_count(topic, 1) >= 2 * count, "not all were delivered")
    return counted.written


class _Counted:
    """Counts what the broker writes between the begin and the end of a `with` block."""

    def __init__(self, broker: BrokerProcess, record_count: int) -> None:
        self._pid = broker.pid
        self._record_count = record_count
        self.written = _Written(0, 0, 0)

    def __enter__(self) -> _Counted:
        self._before = self._totals()
        return self

    def __exit__(self, *_: object) -> None:
        found = (
            (later - earlier) / self._record_count
            for later, earlier in zip(self._totals(), self._before, strict=True)
        )
        self.written = _Written(*found)

    def _totals(self) -> tuple[float, float, float]:
        lines = Path(f"/proc/{self._pid}/io").read_text().splitlines()
        told = {name: int(value) for name, value in (line.split(": ") for line in lines)}
        # Answers over sockets are writes too, but few and small in both.
        return told["syscw"], told["wchar"], cpu_seconds(self._pid) * 1e6
