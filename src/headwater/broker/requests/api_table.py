"""The one table of APIs: dispatch and ApiVersions are both made from it.

What is served, in which versions and to whom, is on the cards (`handlers.cards`), which are data.
The handler of an API is in the module of its name under `handlers`. That is imported when the API
is first asked for: of the forty, a broker that starts needs three or four to answer its first
producer, and all of them would take a tenth of its start.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Final

from headwater.base.checks import check
from headwater.broker.handlers.cards.all_cards import CARDS, cards_by_key
from headwater.broker.handlers.cards.api_card import ApiCard
from headwater.broker.requests.api_handler import ApiHandler, ExchangeHandler
from headwater.wire.api_keys import ApiKey

Handler = ApiHandler | ExchangeHandler


def load_handler(api_key: ApiKey) -> Handler:
    """The handler in the module of its name."""
    module = import_module(f"headwater.broker.handlers.{api_key.name.lower()}")
    handler: Handler = module.API
    check(handler.card is CARDS[api_key], "%s has the card of another API", module.__name__)
    return handler


class ApiTable:
    """The APIs that a broker serves, and who answers."""

    def __init__(
        self,
        cards: Mapping[ApiKey, ApiCard],
        load: Callable[[ApiKey], Handler] = load_handler,
    ) -> None:
        self.cards = cards
        self._load = load
        self._loaded: dict[int, Handler] = {}

    def without(self, api_keys: Collection[ApiKey]) -> ApiTable:
        """The same without some APIs, which are then as unknown as any."""
        cards = {key: card for key, card in self.cards.items() if key not in api_keys}
        return ApiTable(cards, self._load)

    def get(self, api_key: int) -> Handler | None:
        """The handler of an API; None if it is not served."""
        handler = self._loaded.get(api_key)
        if handler is None and api_key in self.cards:
            handler = self._loaded[api_key] = self._load(ApiKey(api_key))
        return handler


def build_table(handlers: Collection[Handler]) -> ApiTable:
    """A table of these handlers."""
    by_key = {handler.api_key: handler for handler in handlers}
    return ApiTable(cards_by_key(handler.card for handler in handlers), by_key.__getitem__)


API_TABLE: Final = ApiTable(CARDS)
