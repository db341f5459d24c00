"""What replicas say they hold: the same however segments are cut, another for any other batch."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.audit import log_checksums
from headwater.audit.log_checksums import LogChecksums, Run
from headwater.wire.cluster_messages.describe_log_checksums import (
    DescribeLogChecksumsRequest,
    DescribeLogChecksumsResponse,
)
from headwater.wire.records import BatchHeader, Record, encode_batch, iter_batch_headers
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker


def headers(*counts: int, value: bytes = b"v") -> list[BatchHeader]:
    """Batches of so many records, one behind the other."""
    found = []
    offset = 0
    for count in counts:
        batch = encode_batch([Record(offset + n, 0, b"k", value) for n in range(count)])
        [(_, header)] = iter_batch_headers(memoryview(batch))
        found.append(header)
        offset += count
    return found


def runs_of(
    found: list[BatchHeader], run_offsets: int, cuts: list[int], from_offset: int = 0
) -> LogChecksums:
    checksums = LogChecksums(from_offset, run_offsets)
    end = found[-1].next_offset if found else from_offset
    edges = sorted({0, *(min(cut, len(found)) for cut in cuts), len(found)})
    for begin, stop in pairwise(edges):
        if checksums.is_full:
            break
        some = found[begin:stop]
        checksums.add(some, found[stop].base_offset if stop < len(found) else end)
    return checksums


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=30),
    st.integers(1, 12),
    st.lists(st.integers(0, 30)),
)
def test_how_a_log_is_cut_makes_no_difference(
    counts: list[int], run_offsets: int, cuts: list[int]
) -> None:
    found = headers(*counts)
    whole, cut = runs_of(found, run_offsets, []), runs_of(found, run_offsets, cuts)
    assert whole.runs == cut.runs
    assert whole.next_offset == cut.next_offset == sum(counts)
    assert sum(run.batch_count for run in whole.runs) == len(counts)
    assert [run.from_offset for run in whole.runs][1:] == [run.to_offset for run in whole.runs][:-1]


def test_another_value_makes_another_checksum_of_its_run_alone() -> None:
    found, other = headers(3, 3, 3, 3), headers(3, 3, 3, 3)
    other[2] = headers(3, 3, 3, value=b"w")[2]
    runs, others = runs_of(found, 6, []).runs, runs_of(other, 6, []).runs
    assert [a == b for a, b in zip(runs, others, strict=True)] == [True, False]


def test_one_answer_ends_at_a_batch_whatever_it_was_given_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_checksums, "BATCHES_MAX", 4)
    monkeypatch.setattr(log_checksums, "RUNS_MAX", 3)
    found = headers(*[1] * 10)
    by_batches = [runs_of(found, 100, cuts) for cuts in ([], [3], [2, 6])]
    assert {(each.next_offset, each.is_full, len(each.runs)) for each in by_batches} == {
        (4, True, 1)
    }
    by_runs = runs_of(found, 1, [])
    assert (by_runs.next_offset, len(by_runs.runs)) == (3, 3)


async def ask(
    broker: HandlerBroker, from_offset: int, to_offset: int, run_offsets: int = 1
) -> DescribeLogChecksumsResponse:
    request = DescribeLogChecksumsRequest(
        topic="orders", from_offset=from_offset, to_offset=to_offset, run_offsets=run_offsets
    )
    return await broker.ask(request, DescribeLogChecksumsResponse)


def test_a_broker_tells_its_bounds_and_its_runs(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders", configs={"segment.bytes": "1048576"})
        assert (await ask(broker, -1, -1)).high_watermark == 0
        assert (await ask(broker, 0, 0)).runs == []
        broker.append("orders", *range(10))
        bounds = await ask(broker, -1, -1)
        assert (bounds.log_start_offset, bounds.high_watermark, bounds.runs) == (0, 10, [])
        single = await ask(broker, 2, 8)
        assert [(run.from_offset, run.to_offset) for run in single.runs] == [
            (offset, offset + 1) for offset in range(2, 8)
        ]
        [first, second] = (await ask(broker, 2, 8, 5)).runs
        assert (first.from_offset, first.to_offset, first.batch_count) == (2, 5, 3)
        assert (second.from_offset, second.to_offset, second.batch_count) == (5, 8, 3)
        again = (await ask(broker, 2, 8, 5)).runs
        assert [each.checksum for each in again] == [first.checksum, second.checksum]

    run_with_broker(tmp_path, scenario)


def test_what_cannot_be_told_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        broker.append("orders", 1)
        for wrong in ((0, 2), (1, 0), (-1, 1), (-5, -5)):
            assert (await ask(broker, *wrong)).error_code == 1, wrong
        assert (await ask(broker, 0, 1, 0)).error_code == 42
        unknown = DescribeLogChecksumsRequest(topic="nowhere")
        assert (await broker.ask(unknown, DescribeLogChecksumsResponse)).error_code == 3
        await broker.create_topic("latest", configs={"cleanup.policy": "compact"})
        compacted = DescribeLogChecksumsRequest(topic="latest")
        refused = await broker.ask(compacted, DescribeLogChecksumsResponse)
        assert refused.error_message == "latest is compacted: its replicas may rightly differ."

    run_with_broker(tmp_path, scenario)


def test_a_run_says_where_it_is() -> None:
    [run] = runs_of(headers(2, 3), 100, []).runs
    assert run == Run(0, 5, 2, run.checksum)
