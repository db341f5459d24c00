"""The benchmark works from end to end; what it measures in this form means nothing."""

import json
from pathlib import Path

import pytest

from bench.log.__main__ import MEASUREMENTS, main
from bench.log.workload import make_batches, send_again
from headwater.wire.records import iter_batch_headers, patch_batch, validate_batch


def test_every_row_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, rows = tmp_path / "table.md", tmp_path / "rows.json"
    logs = tmp_path / "logs"
    arguments = ["--tiny", "--markdown", str(table), "--json", str(rows), "--directory", str(logs)]
    assert main(arguments) == 0
    found = json.loads(rows.read_text())["rows"]
    with_goals = [row["what"] for row in found if row["goal"] is not None]
    assert with_goals == [
        "Append batches of 1 MB",
        "Read 1 MB at a time",
        "Send 1 MB at a time over TCP",
        "Find an offset in an active segment of 2 MB",
        "Find an offset in a sealed segment of 2 MB",
        "Recover an unclean log of 2 MB in batches of 16 KB",
        "Memory growth between a log of 1 MB and of 2 MB",
        "20 partitions: open descriptors",
    ]
    assert len(found) > len(with_goals)
    assert all(row["figure"]["median"] > 0 for row in found if "growth" not in row["what"])
    printed = capsys.readouterr()
    assert printed.out.strip() == table.read_text().strip()
    assert [line.split(":")[0] for line in printed.err.splitlines()] == list(MEASUREMENTS)
    assert list(logs.iterdir()) == []  # Nothing is left behind.


@pytest.mark.parametrize("size_bytes", [200, 1024, 16 * 1024, 1 << 20])
def test_batches_have_the_size_asked_for_and_are_valid(size_bytes: int) -> None:
    batches = make_batches(size_bytes, 2)
    for batch in batches:
        [(position, header)] = iter_batch_headers(batch)
        validate_batch(batch, position, header)
        assert len(batch) == header.size_bytes == size_bytes
    assert batches[0] != batches[1]


def test_a_batch_can_be_sent_again() -> None:
    batch = make_batches(200, 1)[0]
    before = bytes(batch)
    patch_batch(batch, 0, base_offset=77)
    assert bytes(batch) != before
    assert bytes(send_again(batch)) == before
