"""A process that is killed while it appends to a log on a real disk, again and again."""

import random
import subprocess
import sys
from pathlib import Path

from headwater.sim.campaigns.logs import append_numbered
from headwater.storage.disk.files import DiskFiles
from headwater.storage.inspection.verify.verify import verify_directory
from headwater.storage.partition_log import PartitionLog
from headwater.wire.records import BatchHeader, decode_records, iter_batch_headers
from tests.support.logs.append_process import WRITER_COUNT, open_where_it_was_left
from tests.support.tiers import rounds

ROOT = Path(__file__).parents[2]


def append_until_killed(
    directory: str, first_producer_id: int, acknowledged_min: int
) -> dict[int, bytes]:
    """Run the process, kill it after some acknowledgements; returns all that it gave."""
    command = [sys.executable, "-m", "tests.support.logs.append_process"]
    process = subprocess.Popen(
        [*command, directory, str(first_producer_id)], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    lines: list[bytes] = []
    try:
        while len(lines) < acknowledged_min and (line := process.stdout.readline()):
            lines.append(line)
    finally:
        process.kill()
        lines += process.stdout.read().splitlines(keepends=True)
        process.stdout.close()
        process.wait()
    acknowledged = {}
    for line in lines:
        if line.endswith(b"\n"):  # The kill may have cut the last one.
            offset, _, value = line[:-1].partition(b" ")
            acknowledged[int(offset)] = value
    return acknowledged


def read_all(log: PartitionLog) -> tuple[list[tuple[int, bytes | None]], dict[int, BatchHeader]]:
    """Every record, and the last batch of every producer, segment by segment."""
    records: list[tuple[int, bytes | None]] = []
    last_batches: dict[int, BatchHeader] = {}
    for segment in log.segments:
        data = segment.region(0, segment.size_bytes).read()
        records += [(record.offset, record.value) for record in decode_records(data)]
        last_batches.update({header.producer_id: header for _, header in iter_batch_headers(data)})
    return records, last_batches


def test_nothing_acknowledged_is_lost_and_no_offset_appears_twice(tmp_path: Path) -> None:
    directory = f"{tmp_path}/topic-0"
    rng = random.Random(9)
    acknowledged: dict[int, bytes] = {}
    for number in range(rounds(small=4, full=40)):
        first_producer_id = number * WRITER_COUNT
        new = append_until_killed(directory, first_producer_id, rng.randrange(1, 300))
        assert new, f"round {number} got nothing done"
        assert acknowledged.keys().isdisjoint(new), f"round {number} gave an offset again"
        acknowledged.update(new)
        log = open_where_it_was_left(directory)
        records, last_batches = read_all(log)
        found = dict(records)
        assert [offset for offset, _ in records] == list(range(log.log_end_offset))
        assert len(set(found.values())) == len(found), f"round {number} wrote a value twice"
        lost = {offset for offset, value in acknowledged.items() if found.get(offset) != value}
        assert not lost, f"round {number} lost {sorted(lost)}"
        # A producer that did not hear of its last batch sends it again.
        for producer_id in range(first_producer_id, first_producer_id + WRITER_COUNT):
            last = last_batches.get(producer_id)
            if last is not None:
                again = append_numbered(log, last.base_sequence, b"again", producer_id=producer_id)
                assert again.is_duplicate and again.base_offset == last.base_offset
        log.close()
        assert [str(finding) for finding in verify_directory(DiskFiles(), directory)] == []
