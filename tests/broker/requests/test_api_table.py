"""The table of APIs, whose handlers are imported when they are first asked for."""

import subprocess
import sys

import pytest

from headwater.base.checks import InvariantError
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_table import API_TABLE, build_table
from headwater.wire.api_keys import ApiKey


@pytest.mark.parametrize("api_key", CARDS)
def test_every_api_has_its_handler(api_key: ApiKey) -> None:
    handler = API_TABLE.get(api_key)
    assert handler is not None
    assert handler.card is CARDS[api_key]
    assert API_TABLE.get(int(api_key)) is handler


@pytest.mark.parametrize("api_key", [-1, 999, int(ApiKey.ENVELOPE)])
def test_what_is_not_served_has_none(api_key: int) -> None:
    assert API_TABLE.get(api_key) is None


def test_an_api_has_one_handler() -> None:
    handler = API_TABLE.get(ApiKey.METADATA)
    assert handler is not None
    with pytest.raises(InvariantError, match="METADATA has two cards"):
        build_table([handler, handler])


def test_the_table_is_there_before_its_handlers() -> None:
    program = (
        "import sys\n"
        "from headwater.broker.requests.api_table import API_TABLE\n"
        "assert len(API_TABLE.cards) > 40\n"
        "print(*(name for name in sys.modules if name.startswith('headwater.broker.handlers.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    imported = done.stdout.split()
    assert imported
    assert all(name.startswith("headwater.broker.handlers.cards") for name in imported)
