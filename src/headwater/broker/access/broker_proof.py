"""How brokers of one cluster prove to each other that they are that.

All brokers of a cluster know its secret (`cluster.secret`). One that connects to another sends a
nonce; the other answers with a nonce of its own and a *proof*; the first answers with its proof.

    initiator                                   acceptor
       | -- id, nonce ------------------------>  |
       |  <------------ id, nonce, its proof --  |  kept on the connection, for one answer
       | -- its proof ----------------------->   |  from here on the connection is a broker's

A proof is an HMAC-SHA256 with the secret over both nonces, both brokers' ids, the cluster's id, and
which of the two sides speaks. So it shows the secret to nobody, is worth nothing on any other
connection (the nonces differ), for another pair of brokers, or sent back to whoever made it (the
sides differ). The acceptor's comes first: a broker tells nothing to an impostor at a broker's
address. A proof is no encryption, and whoever can change what is on the wire is not kept out.
"""

from __future__ import annotations

import hmac
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from headwater.net.peer_errors import PeerUnavailableError
from headwater.wire.api_keys import (
    INTER_BROKER_APIS_AT_FIRST,
    SCHEMA_VERSIONS,
    VersionRange,
)
from headwater.wire.cluster_messages.prove_broker import ProveBrokerRequest, ProveBrokerResponse

if TYPE_CHECKING:
    from headwater.broker.environment import DrawBytes
    from headwater.net.peer_channel import PeerChannel

NONCE_BYTES: Final = 32
_INITIATOR: Final = b"headwater broker proof, initiator\0"
_ACCEPTOR: Final = b"headwater broker proof, acceptor\0"
_IDS: Final = Struct(">ii")


class Challenge(NamedTuple):
    """What both sides of one conversation put into their proofs."""

    initiator_id: int
    acceptor_id: int
    initiator_nonce: bytes
    acceptor_nonce: bytes


class BrokerProof:
    """One broker's side of all such conversations; nobody else has the secret."""

    def __init__(self, secret: bytes, cluster_id: str, node_id: int, draw_bytes: DrawBytes) -> None:
        self._secret = secret
        self._cluster_id = cluster_id.encode()
        self._node_id = node_id
        self._draw_bytes = draw_bytes

    # -- the acceptor ----------------------------------------------------------------------------

    def challenge(self, request: ProveBrokerRequest) -> Challenge:
        """What the broker that asks has to answer."""
        return Challenge(
            request.broker_id, self._node_id, bytes(request.nonce), self._draw_bytes(NONCE_BYTES)
        )

    def response(self, challenge: Challenge) -> ProveBrokerResponse:
        """This broker's own proof, and what the other one needs for its."""
        return ProveBrokerResponse(
            broker_id=self._node_id,
            nonce=challenge.acceptor_nonce,
            proof=self._sealed(_ACCEPTOR, challenge),
        )

    def is_met(self, challenge: Challenge, request: ProveBrokerRequest) -> bool:
        """Whether the broker that asks is the one that it says it is."""
        is_right = hmac.compare_digest(self._sealed(_INITIATOR, challenge), bytes(request.proof))
        return is_right and request.broker_id == challenge.initiator_id

    # -- the initiator ---------------------------------------------------------------------------

    async def exchange(self, channel: PeerChannel, broker_id: int, timeout_s: float) -> None:
        """Prove this broker to another one, after that one has proven to be `broker_id`."""
        nonce = self._draw_bytes(NONCE_BYTES)
        request = ProveBrokerRequest(broker_id=self._node_id, nonce=nonce)
        response: ProveBrokerResponse = await channel.send(request, timeout_s=timeout_s)
        challenge = Challenge(self._node_id, broker_id, nonce, bytes(response.nonce))
        is_right = hmac.compare_digest(self._sealed(_ACCEPTOR, challenge), bytes(response.proof))
        if not is_right or len(response.nonce) != NONCE_BYTES:
            raise PeerUnavailableError(
                f"{channel.peer} does not prove that it is broker {broker_id} of this cluster."
            )
        request.proof = self._sealed(_INITIATOR, challenge)
        told: ProveBrokerResponse = await channel.send(request, timeout_s=timeout_s)
        channel.learn_inter_broker_versions(
            {each.api_key: VersionRange(each.min_version, each.max_version) for each in told.apis}
            or {api_key: SCHEMA_VERSIONS[api_key] for api_key in INTER_BROKER_APIS_AT_FIRST}
        )

    def _sealed(self, side: bytes, challenge: Challenge) -> bytes:
        # Nonces have one size and ids too, so no two challenges make the same text.
        text = b"".join(
            (
                side,
                challenge.initiator_nonce,
                challenge.acceptor_nonce,
                _IDS.pack(challenge.initiator_id, challenge.acceptor_id),
                self._cluster_id,
            )
        )
        return hmac.digest(self._secret, text, "sha256")
