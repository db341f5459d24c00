"""The one table of APIs: dispatch and ApiVersions are both made from it.

The handler of an API is in the module of its name under `handlers`. That is imported when the API
is first asked for: of the forty, a broker that starts needs three or four to answer its first
producer, and all of them would take a tenth of its start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Final

from headwater.base.checks import check
from headwater.broker.requests.api_handler import ApiHandler, ExchangeHandler
from headwater.wire.api_keys import SCHEMA_VERSIONS, ApiKey, VersionRange

Handler = ApiHandler | ExchangeHandler

#: What is served, each in all versions that have a schema, but for those whose handler says less.
SERVED: Final = (
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ALLOCATE_PRODUCER_IDS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.ALTER_PARTITION,
    ApiKey.ALTER_REPLICA_LOG_DIRS,
    ApiKey.API_VERSIONS,
    ApiKey.BROKER_HEARTBEAT,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_GROUPS,
    ApiKey.DELETE_RECORDS,
    ApiKey.DELETE_TOPICS,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.DESCRIBE_LOG_DIRS,
    ApiKey.DESCRIBE_PRODUCERS,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    ApiKey.DESCRIBE_TRANSACTIONS,
    ApiKey.ELECT_LEADERS,
    ApiKey.END_TXN,
    ApiKey.FETCH,
    ApiKey.FIND_COORDINATOR,
    ApiKey.HEARTBEAT,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.JOIN_GROUP,
    ApiKey.LEAVE_GROUP,
    ApiKey.LIST_CONFIG_RESOURCES,
    ApiKey.LIST_GROUPS,
    ApiKey.LIST_OFFSETS,
    ApiKey.LIST_TRANSACTIONS,
    ApiKey.METADATA,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_DELETE,
    ApiKey.OFFSET_FETCH,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    ApiKey.PRODUCE,
    ApiKey.PROVE_BROKER,
    ApiKey.SET_CONFIGS,
    ApiKey.SYNC_GROUP,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.UPDATE_IMAGE,
    ApiKey.WRITE_TXN_MARKERS,
)

_NARROWER: Final = {
    ApiKey.ALTER_PARTITION: VersionRange(3, 3),
    ApiKey.WRITE_TXN_MARKERS: VersionRange(1, 1),
}


def load_handler(api_key: ApiKey) -> Handler:
    """The handler in the module of its name."""
    module = import_module(f"headwater.broker.handlers.{api_key.name.lower()}")
    handler: Handler = module.API
    check(handler.api_key is api_key, "%s has the handler of another API", module.__name__)
    return handler


class ApiTable:
    """The APIs that a broker serves, in which versions, and who answers."""

    def __init__(
        self,
        versions: Mapping[ApiKey, VersionRange],
        load: Callable[[ApiKey], Handler] = load_handler,
    ) -> None:
        self.versions = versions
        self._load = load
        self._loaded: dict[int, Handler] = {}

    def get(self, api_key: int) -> Handler | None:
        """The handler of an API; None if it is not served."""
        handler = self._loaded.get(api_key)
        if handler is None and api_key in self.versions:
            handler = self._loaded[api_key] = self._load(ApiKey(api_key))
        return handler


def build_table(handlers: Iterable[Handler]) -> ApiTable:
    """A table of these handlers."""
    by_key = {handler.api_key: handler for handler in handlers}
    return ApiTable({key: handler.versions for key, handler in by_key.items()}, by_key.__getitem__)


API_TABLE: Final = ApiTable({key: SCHEMA_VERSIONS[key] for key in SERVED} | _NARROWER)
