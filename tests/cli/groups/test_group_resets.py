"""Where `headwater groups reset-offsets` leaves a group."""

from pathlib import Path

import pytest

from tests.support.group_tables import Command, cells, offsets_of


@pytest.mark.parametrize(
    ("whereto", "expected"),
    [
        (("--to-earliest",), (0, 0, 0)),
        (("--to-latest",), (0, 1, 2)),
        (("--to-offset", 1), (0, 1, 1)),
        (("--to-offset", 99), (0, 1, 2)),
        (("--to-current",), (0, 1, 1)),
        (("--to-datetime", "2020-01-31T12:00:00.000"), (0, 0, 0)),
        (("--to-datetime", "2100-01-31T12:00:00+01:00"), (0, 1, 2)),
        (("--by-duration", "P1D"), (0, 0, 0)),
        (("--by-duration", "-P1D"), (0, 1, 2)),
    ],
)
def test_whereto_offsets_are_reset(
    groups: Command,
    group: str,
    topic: str,
    whereto: tuple[object, ...],
    expected: tuple[int, ...],
) -> None:
    before = offsets_of(groups, group)
    planned = groups("reset-offsets", group, "--topic", topic, *whereto)
    assert planned.exit_code == 0
    assert planned.stderr.endswith("Nothing was changed; --execute sets these offsets.\n")
    assert ("instead of 99" in planned.stderr) == ("99" in map(str, whereto))
    assert cells(planned) == [
        ["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"],
        *([group, topic, str(number), str(offset)] for number, offset in enumerate(expected)),
    ]
    dry = groups("--reset-offsets", "--group", group, "--topic", topic, *whereto, "--dry-run")
    assert dry.stdout == planned.stdout
    assert offsets_of(groups, group) == before
    done = groups("reset-offsets", group, "--topic", topic, *whereto, "--execute")
    assert done.stdout == planned.stdout
    assert offsets_of(groups, group) == dict(enumerate(expected))


def test_offsets_are_shifted(groups: Command, group: str, topic: str) -> None:
    for shift, expected in ((-1, {1: 0, 2: 0}), (1, {1: 1, 2: 1}), (5, {1: 1, 2: 2})):
        done = groups("reset-offsets", group, "--all-topics", "--shift-by", shift, "--execute")
        assert done.exit_code == 0
        assert offsets_of(groups, group) == expected
    nothing = groups("reset-offsets", group, "--topic", topic, "--shift-by", 1)
    assert (nothing.exit_code, nothing.stdout) == (1, "")
    assert nothing.stderr == (
        f"headwater: {topic}-0 cannot be reset: there is no committed offset to shift.\n"
    )


def test_offsets_are_saved_and_brought_back(
    groups: Command, group: str, topic: str, tmp_path: Path
) -> None:
    saved = groups("reset-offsets", group, "--all-topics", "--to-current", "--export")
    assert (saved.stdout, saved.stderr) == (f"{topic},1,1\n{topic},2,1\n", "")
    path = tmp_path / "offsets.csv"
    path.write_bytes(saved.output)
    groups("reset-offsets", group, "--all-topics", "--to-earliest", "--execute")
    assert offsets_of(groups, group) == {1: 0, 2: 0}
    back = groups("--reset-offsets", "--group", group, "--from-file", path, "--execute")
    assert (back.exit_code, back.stderr) == (0, "")
    assert offsets_of(groups, group) == {1: 1, 2: 1}
    other = groups("reset-offsets", "--group", "a", "--group", "b", "--from-file", path)
    assert other.exit_code == 2
    path.write_text(f"{group},{topic},2,2\n")
    missing = groups("reset-offsets", "someone-else", "--from-file", path)
    assert missing.stderr == "headwater: The file has no offsets for group 'someone-else'.\n"


def test_partitions_that_do_not_exist(groups: Command, group: str, topic: str) -> None:
    for named, sentence in (
        ("absent", "There is no topic 'absent'."),
        (f"{topic}:7", f"Topic {topic!r} has no partition 7: it has partitions 0 to 2."),
    ):
        failed = groups("reset-offsets", group, "--topic", named, "--to-earliest")
        assert (failed.exit_code, failed.stdout) == (1, "")
        assert failed.stderr == f"headwater: {sentence}\n"
