"""An entry of the API table: which API, which versions, and who answers.

Most APIs have an async function from request to response (`ApiHandler`). The two hot ones, Produce
and Fetch, take the exchange itself (`ExchangeHandler`): they answer without a task of their own,
and pass record batches on without copying them. So does ProveBroker, which may end the connection.

What brokers alone may ask has a handler that is marked, too: the dispatcher refuses it to everyone
who has not proven to be one.

What only the controller can do has a handler that is marked: on any other broker the request is
forwarded, see `forwarding`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwater.wire.api_keys import SCHEMA_VERSIONS, ApiKey, VersionRange
from headwater.wire.frames import RequestHeader
from headwater.wire.schema import Message

if TYPE_CHECKING:
    from headwater.broker.context import RequestContext
    from headwater.cluster.image.image import ClusterImage
    from headwater.net.exchange import Exchange

#: The first argument is the request class of the API.
Handle = Callable[[Any, "RequestContext"], Awaitable[Message]]
HandleExchange = Callable[["Exchange", RequestHeader, "RequestContext"], None]
#: Request and response of the API, and an image: whether that shows what the response says.
IsSeen = Callable[[Any, Any, "ClusterImage"], bool]


@dataclass(frozen=True, slots=True)
class ApiHandler:
    api_key: ApiKey
    handle: Handle
    #: Where not all versions that have a schema are served.
    served: VersionRange | None = None
    #: Of an API that only the controller can serve: when its change has reached another broker.
    forwarded_until: IsSeen | None = None
    #: Whether it is for those alone who have proven to be brokers of this cluster.
    brokers_only: bool = False

    @property
    def versions(self) -> VersionRange:
        return SCHEMA_VERSIONS[self.api_key] if self.served is None else self.served


@dataclass(frozen=True, slots=True)
class ExchangeHandler:
    api_key: ApiKey
    handle: HandleExchange
    served: VersionRange | None = None

    @property
    def versions(self) -> VersionRange:
        return SCHEMA_VERSIONS[self.api_key] if self.served is None else self.served
