"""The judge of these tests sees what it is there to see: losses, doubles, disorder, divergence."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.support.logs.replica_files import difference
from tests.support.traffic.ledger import Ledger
from tests.support.traffic.readers import Seen

COUNT = 12
PARTITION_COUNT = 3


def full_ledger() -> Ledger:
    """A writer that sent twelve numbers in turn, of which the last was not acknowledged."""
    ledger = Ledger()
    ledger.sent_count = COUNT
    ledger.acknowledged = [(number % PARTITION_COUNT, number) for number in range(COUNT - 1)]
    return ledger


def whole_topic() -> dict[int, list[int]]:
    return {part: list(range(part, COUNT, PARTITION_COUNT)) for part in range(PARTITION_COUNT)}


def test_a_whole_topic_has_no_faults() -> None:
    assert full_ledger().faults(whole_topic()) == []


def test_what_was_not_acknowledged_may_be_missing() -> None:
    found = whole_topic()
    found[(COUNT - 1) % PARTITION_COUNT].remove(COUNT - 1)
    assert full_ledger().faults(found) == []


@given(number=st.integers(0, COUNT - 2))
def test_a_loss_is_seen(number: int) -> None:
    found = whole_topic()
    found[number % PARTITION_COUNT].remove(number)
    assert full_ledger().faults(found) == [
        f"{number} of partition {number % PARTITION_COUNT} is lost"
    ]


@given(number=st.integers(0, COUNT - 1), is_idempotent=st.booleans())
def test_a_double_is_seen_where_it_matters(number: int, is_idempotent: bool) -> None:
    found = whole_topic()
    numbers = found[number % PARTITION_COUNT]
    numbers.insert(numbers.index(number), number)
    faults = full_ledger().faults(found, is_idempotent=is_idempotent)
    assert faults == (
        [f"{number} is there 2 times in partition {number % PARTITION_COUNT}"]
        if is_idempotent
        else []
    )


@given(partition=st.integers(0, PARTITION_COUNT - 1), place=st.integers(0, 2))
def test_disorder_is_seen(partition: int, place: int) -> None:
    found = whole_topic()
    numbers = found[partition]
    numbers[place], numbers[place + 1] = numbers[place + 1], numbers[place]
    assert f"{numbers[place + 1]} comes after {numbers[place]} in partition {partition}" in (
        full_ledger().faults(found)
    )


def test_a_record_in_another_partition_is_lost_where_it_was_acknowledged() -> None:
    found = whole_topic()
    found[0].remove(3)
    found[1].insert(1, 3)
    assert full_ledger().faults(found) == ["3 of partition 0 is lost"]


def test_what_nobody_sent_is_seen() -> None:
    found = whole_topic()
    found[2].append(COUNT)
    assert full_ledger().faults(found) == [f"{COUNT} was never sent"]


def test_an_offset_that_changes_is_seen() -> None:
    seen = Seen()
    seen.note(0, 5, 17)
    seen.note(0, 5, 17)
    assert seen.conflicts == []
    seen.note(0, 5, 18)
    assert seen.conflicts == ["offset 5 of partition 0 was 17 and then 18"]


def test_replicas_that_differ_are_seen(tmp_path: Path) -> None:
    directories = {}
    for broker_id, segments in ((1, [b"abcd", b"ef"]), (2, [b"abcdef"]), (3, [b"abcd", b"ex"])):
        directories[broker_id] = tmp_path / str(broker_id)
        directories[broker_id].mkdir()
        position = 0
        for content in segments:
            (directories[broker_id] / f"{position:020d}.log").write_bytes(content)
            position += len(content)
    # Where a segment ends is each replica's own affair.
    assert difference({each: directories[each] for each in (1, 2)}) is None
    assert difference(directories) == "brokers 1 (6 bytes) and 3 (6 bytes) differ at byte 5"
