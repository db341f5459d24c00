"""The page of APIs in the docs is the one that the cards give."""

from pathlib import Path

import pytest

from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.handlers.cards.api_card import ApiCard
from headwater.wire.api_keys import INTER_BROKER_APIS, PRIVATE_APIS, request_class
from tools.api_reference import apis_page
from tools.file_map import SOURCE, first_sentence

PAGE = Path(__file__).parents[2] / "docs" / "apis.md"


def name_of(card: ApiCard) -> str:
    return request_class(card.api_key).__name__.removesuffix("Request")


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == apis_page(), "run `make docs`"


@pytest.mark.parametrize("card", CARDS.values(), ids=lambda card: card.api_key.name)
def test_every_api_has_a_section_with_its_notes(card: ApiCard) -> None:
    name = name_of(card)
    [_, section] = apis_page().split(f"\n### {name}\n")
    section = section.split("\n#")[0]
    assert f"Key {int(card.api_key)}, version" in section
    assert ("For brokers only." in section) == card.brokers_only
    assert all(
        f"{access.operation.name} on {access.resource.name}" in section for access in card.access
    )
    for version, note in card.notes.items():
        [line] = [line for line in section.splitlines() if line.startswith(f"- v{version}: ")]
        assert line.endswith(note)


def test_what_clients_are_told_is_in_the_table() -> None:
    page = apis_page()
    for card in CARDS.values():
        is_listed = f"\n| {name_of(card)} | {int(card.api_key)} | " in page
        assert is_listed == (card.api_key not in INTER_BROKER_APIS)
    assert "\n| Produce | 0 | 0 to 13 |\n" in page


def test_a_version_tells_when_it_is_the_first_flexible_one() -> None:
    assert "\n- v12: flexible; the leader finds out" in apis_page()


@pytest.mark.parametrize("card", CARDS.values(), ids=lambda card: card.api_key.name)
def test_a_handler_says_first_which_api_it_is(card: ApiCard) -> None:
    private = "private " if card.api_key in PRIVATE_APIS else ""
    path = SOURCE / "broker" / "handlers" / f"{card.api_key.name.lower()}.py"
    opening = f"{name_of(card)} ({private}key {int(card.api_key)}): "
    assert first_sentence(path).startswith(opening)
