"""The cards of all APIs: each has one, and it says what can be."""

import pkgutil

import pytest

from headwater.base.checks import InvariantError
from headwater.broker import handlers
from headwater.broker.access.authorized_operations import (
    CLUSTER_OPERATIONS,
    GROUP_OPERATIONS,
    TOPIC_OPERATIONS,
    bit_field,
)
from headwater.broker.access.operations import Access, Operation, Resource
from headwater.broker.handlers.cards.all_cards import AREAS, CARDS, cards_by_key
from headwater.broker.handlers.cards.api_card import ApiCard
from headwater.broker.wiring.telemetry import TELEMETRY_APIS
from headwater.wire.api_keys import INTER_BROKER_APIS, ApiKey, VersionRange

OPERATIONS = {
    Resource.TOPIC: TOPIC_OPERATIONS,
    Resource.GROUP: GROUP_OPERATIONS,
    Resource.CLUSTER: CLUSTER_OPERATIONS,
    Resource.TRANSACTIONAL_ID: bit_field(Operation.WRITE, Operation.DESCRIBE),
}


def test_every_handler_has_a_card_and_every_card_a_handler() -> None:
    modules = {
        module.name.upper()
        for module in pkgutil.iter_modules(handlers.__path__)
        if not module.ispkg
    }
    assert modules == {api_key.name for api_key in CARDS}


def test_every_card_is_in_the_table() -> None:
    assert list(CARDS.values()) == [card for area in AREAS.values() for card in area]


def test_two_cards_for_an_api_are_a_mistake() -> None:
    card = ApiCard(ApiKey.FETCH)
    with pytest.raises(InvariantError, match="FETCH has two cards"):
        cards_by_key([card, ApiCard(ApiKey.PRODUCE), card])


def test_a_card_serves_what_has_a_schema_unless_it_says_less() -> None:
    assert ApiCard(ApiKey.FETCH).versions == ApiKey.FETCH.schema_versions
    assert ApiCard(ApiKey.FETCH, versions=VersionRange(5, 6)).versions == (5, 6)
    assert CARDS[ApiKey.WRITE_TXN_MARKERS].versions == (1, 1)


@pytest.mark.parametrize("card", CARDS.values(), ids=lambda card: card.api_key.name)
def test_a_card_says_what_can_be(card: ApiCard) -> None:
    assert card.versions.lowest in card.api_key.schema_versions
    assert card.versions.highest in card.api_key.schema_versions
    assert list(card.notes) == sorted(card.notes)
    for version, note in card.notes.items():
        assert version in card.versions
        assert note
        assert not note.endswith(".")
    for access in card.access:
        assert OPERATIONS[access.resource] & bit_field(access.operation)


def test_what_clients_are_not_told_of_is_for_brokers_only() -> None:
    for_brokers = {api_key for api_key, card in CARDS.items() if card.brokers_only}
    # But for how a connection becomes a broker's.
    assert for_brokers == INTER_BROKER_APIS - {ApiKey.PROVE_BROKER}


def test_brokers_alone_do_cluster_actions() -> None:
    action = (Access(Operation.CLUSTER_ACTION, Resource.CLUSTER),)
    assert all((card.access == action) == card.brokers_only for card in CARDS.values())


def test_what_needs_no_access() -> None:
    open_to_all = {api_key for api_key, card in CARDS.items() if not card.access}
    # Tokens belong to whoever asked for them.
    of_tokens = {api_key for api_key in CARDS if api_key.name.endswith("_DELEGATION_TOKEN")}
    assert open_to_all == {ApiKey.API_VERSIONS, ApiKey.PROVE_BROKER, *TELEMETRY_APIS} | of_tokens
