"""The reference pages of clients in the docs are those that the tables give."""

from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.base.settings import SettingTable
from tools.client_reference import (
    AREAS,
    PAGES,
    client_errors_page,
    client_settings_page,
)

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_up_to_date(name: str) -> None:
    assert (DOCS / f"client-{name}.md").read_text() == PAGES[name](), "run `make docs`"


def test_every_error_has_a_line() -> None:
    codes = [line.split(" | ")[0] for line in client_errors_page().splitlines()[9:]]
    assert codes == [f"| {int(code)}" for code in sorted(ErrorCode) if code is not ErrorCode.NONE]


@pytest.mark.parametrize(("title", "table"), AREAS, ids=lambda value: str(value)[:20])
def test_every_setting_has_a_line_in_its_section(title: str, table: SettingTable) -> None:
    section = client_settings_page().split(f"## {title}\n")[1].split("\n## ")[0]
    assert all(section.count(f"\n| `{row.name}` |") == 1 for row in table)


def test_settings_without_effect_are_listed_with_the_reason() -> None:
    listed = client_settings_page().split("## Taken without effect")[1]
    for _, table in AREAS:
        for row in table:
            line = f"| `{row.name}` ({table.area}) | {row.without_effect} |"
            assert (line in listed) == bool(row.without_effect)
