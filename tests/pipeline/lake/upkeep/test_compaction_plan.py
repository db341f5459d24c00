from hypothesis import given
from hypothesis import strategies as st

from headwater.pipeline.lake.table.data_file import DataFile, RecordSpan
from headwater.pipeline.lake.upkeep.compaction_plan import CompactionOptions, plan_compaction

RULES = CompactionOptions(from_files=3, target_bytes=100, tiers_bytes=(10, 50))


def plain(name: str, size_bytes: int) -> DataFile:
    return DataFile(f"data/{name}", size_bytes, 1)


def archived(
    first: int, size_bytes: int, *, partition: int = 0, last: int | None = None
) -> DataFile:
    span = RecordSpan("t", partition, first, first if last is None else last)
    return DataFile(f"data/topic=t/{partition}-{first:05d}", size_bytes, 1, ("t",), span)


FILES = st.lists(
    st.builds(archived, st.integers(0, 500), st.integers(1, 120), partition=st.integers(0, 1)),
    max_size=40,
    unique_by=lambda file: file.path,
)


@given(FILES)
def test_only_small_neighbours_of_a_partition_are_joined(files: list[DataFile]) -> None:
    planned = plan_compaction(files, RULES)
    assert len({file for group in planned for file in group}) == sum(map(len, planned))
    for group in planned:
        assert len(group) >= RULES.from_files
        assert sum(file.size_bytes for file in group) <= RULES.target_bytes
        spans = [file.records for file in group if file.records is not None]
        assert len({span.partition for span in spans}) == 1
        firsts = [span.first_offset for span in spans]
        assert firsts == sorted(firsts)
        between = [
            file
            for file in files
            if file.records is not None
            and file.records.partition == spans[0].partition
            and firsts[0] <= file.records.first_offset <= firsts[-1]
        ]
        assert len(between) == len(group)


def test_files_of_like_size_go_together_first() -> None:
    files = [plain("a", 40), plain("b", 40), *(plain(f"c{number}", 5) for number in range(3))]
    assert [len(group) for group in plan_compaction(files, RULES)] == [3]
    assert plan_compaction(files, RULES)[0][0].path == "data/c0"
    assert plan_compaction(files[:4], RULES) == [(files[0], files[1], files[2], files[3])]


def test_few_files_and_interleaved_ones_stay() -> None:
    assert plan_compaction([plain("a", 5), plain("b", 5)], RULES) == []
    overlapping = [archived(0, 5, last=9), archived(5, 5, last=7), archived(20, 5)]
    assert plan_compaction(overlapping, RULES) == []
