"""Every setting of a client is read by it, or its row says why it has no effect."""

import re
from pathlib import Path

import pytest

import headwater
from headwater.base.settings import Setting
from headwater.client.settings.admin_settings import ADMIN_SETTINGS
from headwater.client.settings.consumer_settings import CONSUMER_SETTINGS
from headwater.client.settings.producer_settings import PRODUCER_SETTINGS

SOURCE = Path(headwater.__file__).parent / "client"
ROWS = {
    row.name: row
    for table in (ADMIN_SETTINGS, CONSUMER_SETTINGS, PRODUCER_SETTINGS)
    for row in table
}

#: The name of the codec is put in there.
_LEVEL = re.compile(r"^compression\.[a-z0-9]+\.level$")


@pytest.fixture(scope="module")
def source() -> str:
    """All modules of the client, without the rows of settings themselves."""
    text = "".join(path.read_text() for path in sorted(SOURCE.rglob("*.py")))
    return "".join(line for line in text.splitlines(keepends=True) if "Setting(" not in line)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_setting_is_read_or_says_why_not(row: Setting, source: str) -> None:
    name = _LEVEL.sub("compression.{name}.level", row.name)
    assert (f'"{name}"' in source) != bool(row.without_effect)
