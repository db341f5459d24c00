"""ProveBroker (private key 10002): a connection becomes a broker's.

For anybody, since nobody is a broker before this. See `broker_proof` for the conversation. What is
wrong with it ends the connection, with one line in the log and no word of what it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headwater.broker.access.broker_proof import NONCE_BYTES, Challenge
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ExchangeHandler
from headwater.net.peer_identity import PeerIdentity
from headwater.wire.api_keys import INTER_BROKER_APIS, ApiKey
from headwater.wire.cluster_messages.prove_broker import (
    ProveBrokerRequest,
    ProveBrokerResponse,
    ServedApi,
)
from headwater.wire.codec import decode
from headwater.wire.frames import encode_response

if TYPE_CHECKING:
    from headwater.broker.context import RequestContext
    from headwater.net.exchange import Exchange

#: What the connection remembers between the two requests.
_CHALLENGE: Final = "broker challenge"


def handle(exchange: Exchange, context: RequestContext) -> None:
    header = context.header
    request, _ = decode(
        ProveBrokerRequest, exchange.frame, header.api_version, header.body_position
    )
    response = _answer(request, context)
    if response is None:
        exchange.disconnect("it has not proven to be a broker of this cluster")
        return
    exchange.answer(
        encode_response(header.api_key, header.api_version, header.correlation_id, response)
    )
    context.record_response(response)


def _answer(request: ProveBrokerRequest, context: RequestContext) -> ProveBrokerResponse | None:
    """The next step of the conversation; None if it has gone wrong."""
    connection, proof = context.connection, context.broker.proof
    # A challenge is for one answer, right or wrong.
    challenge = connection.state.pop(_CHALLENGE, None)
    if connection.identity.is_broker:
        return None
    if isinstance(challenge, Challenge):
        if not proof.is_met(challenge, request):
            return None
        connection.identity = PeerIdentity(request.broker_id)
        return ProveBrokerResponse(broker_id=context.broker.node_id, apis=_served())
    if request.broker_id < 0 or len(request.nonce) != NONCE_BYTES or request.proof:
        return None
    challenge = connection.state[_CHALLENGE] = proof.challenge(request)
    return proof.response(challenge)


def _served() -> list[ServedApi]:
    """What this broker serves to other brokers alone, which ApiVersions does not tell."""
    return [
        ServedApi(
            api_key=api_key,
            min_version=CARDS[api_key].versions.lowest,
            max_version=CARDS[api_key].versions.highest,
        )
        for api_key in sorted(INTER_BROKER_APIS)
    ]


API = ExchangeHandler(CARDS[ApiKey.PROVE_BROKER], handle)
