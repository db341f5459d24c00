"""All cards by API: what a broker serves is what has one.

Who adds an API adds a row to the file of its area here, and a module of the API's name to
`handlers`; there is no other list.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from headwater.base.checks import check
from headwater.broker.handlers.cards.api_card import ApiCard
from headwater.broker.handlers.cards.brokers import BROKER_CARDS
from headwater.broker.handlers.cards.cluster import CLUSTER_CARDS
from headwater.broker.handlers.cards.groups import GROUP_CARDS
from headwater.broker.handlers.cards.records import RECORD_CARDS
from headwater.broker.handlers.cards.security import SECURITY_CARDS
from headwater.broker.handlers.cards.topics import TOPIC_CARDS
from headwater.broker.handlers.cards.transactions import TRANSACTION_CARDS
from headwater.wire.api_keys import ApiKey

#: By area, in the order of the reference page.
AREAS: Final[Mapping[str, tuple[ApiCard, ...]]] = MappingProxyType(
    {
        "Records": RECORD_CARDS,
        "Topics and partitions": TOPIC_CARDS,
        "Groups and offsets": GROUP_CARDS,
        "Transactions": TRANSACTION_CARDS,
        "The cluster and its settings": CLUSTER_CARDS,
        "Access, quotas, credentials and tokens": SECURITY_CARDS,
        "Between brokers": BROKER_CARDS,
    }
)


def cards_by_key(cards: Iterable[ApiCard]) -> Mapping[ApiKey, ApiCard]:
    """The cards by their API, of which each has one."""
    by_key: dict[ApiKey, ApiCard] = {}
    for card in cards:
        check(card.api_key not in by_key, "%s has two cards", card.api_key.name)
        by_key[card.api_key] = card
    return MappingProxyType(by_key)


CARDS: Final = cards_by_key(card for area in AREAS.values() for card in area)
