"""Whole passes of compaction against the model."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.log_config import LogConfig
from headwater.wire.records import Compression
from tests.support.models.compaction import SMALL, CompactedLog
from tests.support.models.compaction_steps import perform, random_operation
from tests.support.tiers import rounds

KEYS = [b"a", b"b", b"c", b"", b"long key " * 9]

entries = st.lists(
    st.tuples(
        st.sampled_from([*KEYS, *KEYS, None]),
        st.one_of(st.none(), st.binary(max_size=3), st.just(bytes(90))),
    ),
    min_size=1,
    max_size=4,
)
codecs = st.sampled_from(list(Compression))
appends = st.tuples(st.just("append"), entries, codecs)
produces = st.tuples(st.just("produce"), st.integers(1, 2), entries, codecs)
transactions = st.tuples(st.just("transact"), st.integers(10, 12), entries, codecs)
ends = st.tuples(st.just("end"), st.integers(10, 12), st.booleans())
passes = st.tuples(st.just("compact"), st.sampled_from([1, 2, 3, 100, 100]))
waits = st.tuples(st.just("wait"), st.sampled_from([10, 1_500]))
reopens = st.tuples(st.just("reopen"), st.booleans())
operations = st.one_of(
    appends, appends, produces, transactions, transactions, ends, ends, passes, waits, reopens
)


@settings(max_examples=rounds(small=100, full=1_500))
@given(st.lists(operations, max_size=40), st.sampled_from([1_000, 2_000, 5_000]))
def test_log_equals_model(steps: list[tuple[object, ...]], segment_bytes: int) -> None:
    config = LogConfig(
        segment_bytes=segment_bytes,
        index_interval_bytes=segment_bytes // 8,
        delete_retention_ms=SMALL.delete_retention_ms,
        file_delete_delay_ms=0,
        retention_ms=-1,
    )
    scenario = CompactedLog(FaultyDisk(directories=["/data"]), config, handle_count=5)
    for step in steps:
        perform(scenario, step)
    perform(scenario, ("compact", 100))
    scenario.check(every_offset=True)
    scenario.reopen(from_scratch=True)
    scenario.check()


def test_log_equals_model_with_many_transactions() -> None:
    for seed in range(rounds(small=15, full=600)):
        rng = Random(seed)
        scenario = CompactedLog(FaultyDisk(directories=["/data"]))
        try:
            for _ in range(70):
                perform(scenario, random_operation(rng))
            perform(scenario, ("compact", 100))
            scenario.check(every_offset=True)
            perform(scenario, ("reopen", True))
            scenario.check()
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
