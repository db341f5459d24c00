"""The soak of the archive finds what is wrong with one, and runs."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pytest

from bench.archive_soak import count_problems, numbered_values, soak_archive, value_numbers
from bench.peak_memory import PeakMemory, resident_by_kind


def test_every_number_is_found_again_in_its_value() -> None:
    parts = list(numbered_values(250_001))
    assert [len(part) for part in parts] == [100_000, 100_000, 50_001]
    found = np.concatenate([value_numbers(part, 250_001) for part in parts])
    assert found.tolist() == list(range(250_001))


def test_values_that_were_changed_are_not_found() -> None:
    (values,) = numbered_values(4)
    whole = values.to_pylist()
    changed = pa.array([whole[0], whole[1][:-1] + b"!", whole[2][:-1], b"", whole[3]], pa.binary())
    assert value_numbers(changed, 4).tolist() == [0, 3]
    assert value_numbers(changed.slice(1), 4).tolist() == [3]
    assert value_numbers(changed, 3).tolist() == [0]


def test_what_is_missing_and_what_is_there_twice_is_told() -> None:
    assert count_problems(np.array([1, 1, 1], dtype=np.uint8)) == []
    assert count_problems(np.array([1, 0, 2, 0], dtype=np.uint8)) == [
        "2 records are missing, the first is 1.",
        "1 are there twice, the first is 2.",
    ]


def test_memory_of_this_process_is_seen() -> None:
    with PeakMemory(os.getpid()) as memory:
        before = resident_by_kind(os.getpid())
    assert before["python"] > 10 << 20
    assert memory.bytes_of("python") > 10 << 20


@pytest.mark.full
def test_a_small_soak_is_right(capsys: pytest.CaptureFixture[str]) -> None:
    assert soak_archive(150_000) == 0
    printed = capsys.readouterr().out
    assert "All 150,000 records are in the archive, each once." in printed
    assert "memory of Spark's Java, peak" in printed
