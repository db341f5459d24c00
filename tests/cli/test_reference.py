"""The settings page in the docs is the one that the tables give."""

from pathlib import Path

from headwater.cli.reference import settings_page
from headwater.storage.log_settings import LOG_SETTINGS

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == settings_page(), "run `make docs`"


def test_every_setting_has_a_line() -> None:
    page = settings_page()
    assert all(f"| `{row.name}` |" in page for row in LOG_SETTINGS)
