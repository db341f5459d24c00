"""The tables of options in docs/spark.md are those that the source gives."""

from pathlib import Path

import pytest

from tools.spark_reference import TABLES, options_table, with_tables

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


def test_the_page_is_up_to_date() -> None:
    text = PAGE.read_text()
    assert text == with_tables(text), "run `make docs`"


@pytest.mark.parametrize("name", TABLES)
def test_every_option_has_its_line_on_the_page(name: str) -> None:
    text = PAGE.read_text()
    section = text.split(f"<!-- options: {name} -->")[1].split("<!-- end of options -->")[0]
    for row in TABLES[name]:
        start = f"\n- `{row.name}`: " if row.refused else f"\n| `{row.name}` | "
        assert section.count(start) == 1


def test_only_marked_parts_are_written() -> None:
    page = "before\n<!-- options: writing -->\nold\n<!-- end of options -->\nafter\n"
    table = options_table(TABLES["writing"])
    assert with_tables(page) == page.replace("old\n", f"\n{table}\n")
