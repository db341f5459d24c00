"""Cards of the APIs that brokers of one cluster ask each other.

Clients are not told of them (`INTER_BROKER_APIS`), and all but ProveBroker are refused to them.
"""

from typing import Final

from headwater.broker.access.operations import Access, Operation, Resource
from headwater.broker.handlers.cards.api_card import ApiCard
from headwater.wire.api_keys import ApiKey, VersionRange

_CLUSTER_ACTION: Final = (Access(Operation.CLUSTER_ACTION, Resource.CLUSTER),)

BROKER_CARDS: Final = (
    ApiCard(
        ApiKey.ALTER_PARTITION,
        access=_CLUSTER_ACTION,
        notes={
            3: "the epoch of each broker that shall be in sync: none counts in a life that is over"
        },
        versions=VersionRange(3, 3),
        brokers_only=True,
    ),
    ApiCard(
        ApiKey.BROKER_HEARTBEAT,
        access=_CLUSTER_ACTION,
        notes={
            0: "`want_shut_down`: the controller moves leaderships, takes the broker out of ISRs",
            1: "directories that failed, which the controller does not care about",
            2: "directories that take nothing new, which it does not care about either",
        },
        brokers_only=True,
    ),
    ApiCard(ApiKey.ALLOCATE_PRODUCER_IDS, access=_CLUSTER_ACTION, brokers_only=True),
    ApiCard(ApiKey.UPDATE_IMAGE, access=_CLUSTER_ACTION, brokers_only=True),
    ApiCard(ApiKey.SET_CONFIGS, access=_CLUSTER_ACTION, brokers_only=True),
    ApiCard(ApiKey.PUBLISH_AUDIT, access=_CLUSTER_ACTION, brokers_only=True),
    ApiCard(ApiKey.PROVE_BROKER),
)
