"""ApiVersions (key 18): which APIs this broker serves, in which versions.

All comes from the cards, but for two quirks that real clients need. Produce is shown from
version 0 although 0 to 2 are refused: librdkafka takes a broker without them for one that cannot
read gzip and snappy. And the finalized features are those of a Kafka whose clients may use
transactions without AddPartitionsToTxn and the new group protocol, because a client that sees the
versions of these APIs without the features misbehaves.

A version that is too new is answered in version 0, with an error and the versions served, so that
the client can ask again; so a client may always begin with this request.

From version 5 on a client that has learned the brokers' addresses says which broker of which
cluster it expects here. If an address has come to belong to another one, what it knows is out of
date, and it is told to begin again with its bootstrap servers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from headwater.base.errors import ErrorCode
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.handlers.cards.api_card import ApiCard
from headwater.broker.requests.api_handler import ApiHandler
from headwater.wire.api_keys import INTER_BROKER_APIS, ApiKey
from headwater.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from headwater.broker.context import RequestContext

_PRODUCE_LOWEST_SHOWN: Final = 0
_FEATURES: Final = {"group.version": (0, 1), "transaction.version": (0, 2)}
_FEATURES_EPOCH: Final = 1
_NO_NODE: Final = -1
#: The same that Kafka accepts as the name and version of a client's software.
_SOFTWARE_NAME: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def served_versions(cards: Iterable[ApiCard]) -> list[ApiVersion]:
    """What is served, as clients are told."""
    return [
        ApiVersion(
            api_key=card.api_key,
            min_version=_lowest_shown(card),
            max_version=card.versions.highest,
        )
        for card in sorted(cards, key=lambda card: card.api_key)
        if card.api_key not in INTER_BROKER_APIS
    ]


def _lowest_shown(card: ApiCard) -> int:
    return _PRODUCE_LOWEST_SHOWN if card.api_key is ApiKey.PRODUCE else card.versions.lowest


def unsupported_version_response() -> ApiVersionsResponse:
    """For a client that asks in a version which this broker does not know; sent in version 0."""
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=served_versions([API.card]),
    )


async def handle(request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
    # Of the cluster and the broker a client knows both or none.
    if (request.cluster_id is None) != (request.node_id == _NO_NODE):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    if context.api_version >= 3:
        names = (request.client_software_name, request.client_software_version)
        if not all(_SOFTWARE_NAME.fullmatch(name) for name in names):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        context.connection.state["client_software"] = names
    wanted = (request.cluster_id, request.node_id)
    if request.cluster_id is not None and wanted != _own_identity(context):
        return ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    return ApiVersionsResponse(
        api_keys=served_versions(context.broker.api_table.cards.values()),
        supported_features=[
            SupportedFeatureKey(name=name, min_version=lowest, max_version=highest)
            for name, (lowest, highest) in _FEATURES.items()
            if lowest > 0 or context.api_version >= 4
        ],
        finalized_features_epoch=_FEATURES_EPOCH,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=highest, min_version_level=highest)
            for name, (_, highest) in _FEATURES.items()
        ],
    )


def _own_identity(context: RequestContext) -> tuple[str, int]:
    return context.broker.cluster_id, context.broker.node_id


API = ApiHandler(CARDS[ApiKey.API_VERSIONS], handle)
