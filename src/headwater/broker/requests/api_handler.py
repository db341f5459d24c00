"""An entry of the API table: the card of an API, and who answers.

Most APIs have an async function from request to response (`ApiHandler`). The two hot ones, Produce
and Fetch, take the exchange itself (`ExchangeHandler`): they answer without a task of their own,
and pass record batches on without copying them. So does ProveBroker, which may end the connection.

What only the controller can do has a handler that is marked: on any other broker the request is
forwarded, see `forwarding`. What changes topics, settings or groups tells the log what it did.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwater.broker.handlers.cards.api_card import ApiCard
from headwater.wire.api_keys import ApiKey
from headwater.wire.schema import Message

if TYPE_CHECKING:
    from headwater.broker.context import RequestContext
    from headwater.cluster.image.image import ClusterImage
    from headwater.net.exchange import Exchange

#: The first argument is the request class of the API.
Handle = Callable[[Any, "RequestContext"], Awaitable[Message]]
HandleExchange = Callable[["Exchange", "RequestContext"], None]
#: Request and response of the API, and an image: whether that shows what the response says.
IsSeen = Callable[[Any, Any, "ClusterImage"], bool]
#: Request and response of the API: what the client did with it, for the log; see `change_log`.
Deeds = Callable[[Any, Any], Iterable[str]]


@dataclass(frozen=True, slots=True)
class ApiHandler:
    card: ApiCard
    handle: Handle
    #: Of an API that only the controller can serve: when its change has reached another broker.
    forwarded_until: IsSeen | None = None
    #: Of an API that changes something which people look after.
    deeds: Deeds | None = None

    @property
    def api_key(self) -> ApiKey:
        return self.card.api_key


@dataclass(frozen=True, slots=True)
class ExchangeHandler:
    card: ApiCard
    handle: HandleExchange

    @property
    def api_key(self) -> ApiKey:
        return self.card.api_key
