"""The settings page in the docs is the one that the tables give."""

from pathlib import Path

from headwater.broker.settings.tables import BROKER_SETTINGS, TOPIC_SETTINGS
from tools.settings_reference import settings_page

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == settings_page(), "run `make docs`"


def test_every_setting_has_a_line() -> None:
    page = settings_page()
    brokers, topics = page.split("## For a topic")
    assert all(brokers.count(f"\n| `{row.name}` |") == 1 for row in BROKER_SETTINGS)
    assert all(f"\n| `{row.name}` |" in topics for row in TOPIC_SETTINGS)


def test_settings_without_effect_are_listed_with_the_reason() -> None:
    page = settings_page()
    listed = page.split("## Taken without effect")[1]
    for row in BROKER_SETTINGS:
        line = f"| `{row.name}` | {row.without_effect} |"
        assert (line in listed) == bool(row.without_effect)
    assert "| `remote.storage.enable` (topic) | There is no tiered storage" in listed
    assert "| `min.insync.replicas`" not in listed
