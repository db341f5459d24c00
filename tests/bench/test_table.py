import json
from pathlib import Path

import pytest

from bench.facts import headwater_fact, machine_fact
from bench.machine import Machine
from bench.rounds import Comparison, Spread
from bench.table import Goal, Row, as_json, as_markdown, format_number
from headwater.base.python_build import python_build

MACHINE = Machine("Some CPU", 4, 8 << 30, "Linux 6", "CPython 3.11", "ext4")


def compared(ratio: float) -> Row:
    comparison = Comparison([ratio * 10], [10.0])
    return Row.compared("Append", "GB/s", comparison, "`os.write`", Goal(0.8))


def test_a_goal_bounds_the_ratio_where_there_is_a_peer() -> None:
    assert compared(0.85).is_met is True
    assert compared(0.75).is_met is False


def test_a_goal_bounds_the_figure_where_there_is_no_peer() -> None:
    goal = Goal(20.0, is_upper=True)
    assert Row.single("Find", "us", 19.0, goal).is_met is True
    assert Row.single("Find", "us", 21.0, goal).is_met is False
    assert Row.single("Find", "us", 21.0).is_met is None


def test_cells_of_a_comparison() -> None:
    assert compared(0.85).cells() == [
        "Append",
        "8.50 GB/s",
        "`os.write`: 10 GB/s",
        "0.85 (0.85..0.85)",
        ">= 0.80",
        "yes",
    ]


def test_cells_of_a_figure_with_a_range_and_a_note() -> None:
    row = Row("Recover", "GB/s", Spread(0.8, 0.7, 0.9), goal=Goal(1.5), note="with care")
    expected = ["Recover", "0.80 GB/s (0.70..0.90), with care", "", "", ">= 1.50 GB/s", "no"]
    assert row.cells() == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.804, "0.80"), (12.345, "12.3"), (12345.6, "12,346"), (900.0, "900"), (20.0, "20")],
)
def test_numbers(value: float, text: str) -> None:
    assert format_number(value) == text


def test_markdown_names_the_machine_and_lines_up() -> None:
    lines = as_markdown(MACHINE, [compared(0.85), Row.single("Find an offset", "us", 9.0)]).split(
        "\n"
    )
    assert lines[0] == (
        "Measured on Some CPU, 4 cores, 8 GiB of memory, Linux 6, CPython 3.11, ext4."
    )
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 4
    assert len({len(line) for line in table}) == 1
    assert set(table[1]) == {"|", "-", " "}


def test_json_says_the_same() -> None:
    text = json.dumps(as_json(MACHINE, [compared(0.75)]))
    found = json.loads(text)
    assert found["machine"]["processor"] == "Some CPU"
    assert found["rows"][0]["ratio"]["median"] == 0.75
    assert found["rows"][0]["is_met"] is False


def test_this_machine_can_be_described(tmp_path: Path) -> None:
    machine = Machine.describe(str(tmp_path))
    assert machine.core_count >= 1
    assert machine.memory_bytes > 1 << 20
    assert machine.file_system


def test_reports_name_the_build_of_python(tmp_path: Path) -> None:
    build = str(python_build())
    assert build in machine_fact(str(tmp_path))
    assert f" on {build}, uvloop " in headwater_fact("uvloop")
