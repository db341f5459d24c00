from pathlib import Path

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.ids import TopicPartition
from headwater.cli.groups.reset_file import ResetOffsets, read_reset_file, reset_file_text

KEYS = st.builds(
    TopicPartition, st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True), st.integers(0, 99)
)
# Group ids may hold anything, commas and quotes among it; nobody puts line ends there.
GROUPS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)


@given(
    offsets=st.dictionaries(
        GROUPS, st.dictionaries(KEYS, st.integers(0, 2**62), min_size=1), min_size=1, max_size=4
    )
)
def test_what_is_exported_can_be_read_again(
    tmp_path_factory: pytest.TempPathFactory, offsets: ResetOffsets
) -> None:
    path = tmp_path_factory.getbasetemp() / "exported.csv"
    path.write_text(reset_file_text(offsets), encoding="utf-8", newline="")
    assert read_reset_file(str(path), list(offsets)) == offsets


def test_groups_are_named_only_where_there_are_several() -> None:
    one: ResetOffsets = {"g": {TopicPartition("orders", 1): 5}}
    assert reset_file_text(one) == "orders,1,5\n"
    two = one | {"h": {TopicPartition("orders", 0): 7}}
    assert reset_file_text(two) == "g,orders,1,5\nh,orders,0,7\n"


def test_one_group_may_be_named_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text("other,orders,0,5\n\norders,1,6\n")
    read = read_reset_file(str(path), ["g"])
    assert read == {
        "other": {TopicPartition("orders", 0): 5},
        "g": {TopicPartition("orders", 1): 6},
    }


@pytest.mark.parametrize(
    ("text", "groups", "reason"),
    [
        ("", ["g"], "names no partition"),
        ("orders,0,5", ["g", "h"], "line 1 of"),
        ("orders,0,5\norders,zero,5", ["g"], "line 2 of"),
        ("orders,0", ["g"], "should be topic,partition,offset"),
    ],
)
def test_a_file_at_fault_is_told(tmp_path: Path, text: str, groups: list[str], reason: str) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text(text)
    with pytest.raises(typer.BadParameter, match=reason):
        read_reset_file(str(path), groups)
