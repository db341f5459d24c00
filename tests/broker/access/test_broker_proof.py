"""The proof that two brokers give each other, step by step and without a network."""

import random
from collections.abc import Mapping
from typing import Any, cast

import pytest

from headwater.broker.access.broker_proof import NONCE_BYTES, BrokerProof, Challenge
from headwater.net.peer_channel import PeerChannel
from headwater.net.peer_errors import PeerUnavailableError
from headwater.wire.api_keys import INTER_BROKER_APIS_AT_FIRST, ApiKey, VersionRange
from headwater.wire.cluster_messages.prove_broker import (
    ProveBrokerRequest,
    ProveBrokerResponse,
    ServedApi,
)
from tests.support.async_tests import run_async

_SECRET = b"s" * 32


def _proof(
    broker_id: int, *, secret: bytes = _SECRET, cluster_id: str = "one", seed: int = 0
) -> BrokerProof:
    source = random.Random(f"{broker_id}/{seed}")
    return BrokerProof(secret, cluster_id, broker_id, source.randbytes)


class _Acceptor:
    """Stands for a channel to a broker, which keeps what it was sent."""

    def __init__(self, proof: BrokerProof) -> None:
        self.peer = "there:9092"
        self.sent: list[ProveBrokerRequest] = []
        self.is_met: bool | None = None
        self.learned: dict[int, VersionRange] = {}
        self.served: list[ServedApi] = []
        self._proof = proof
        self._challenge: Challenge | None = None

    async def send(self, request: ProveBrokerRequest, *, timeout_s: float) -> ProveBrokerResponse:
        assert timeout_s > 0
        if self._challenge is None:
            self._challenge = self._proof.challenge(request)
            return self._proof.response(self._challenge)
        self.is_met = self._proof.is_met(self._challenge, request)
        self.sent.append(request)
        return ProveBrokerResponse(apis=self.served)

    def learn_inter_broker_versions(self, versions: Mapping[int, VersionRange]) -> None:
        self.learned.update(versions)


async def _exchange(initiator: BrokerProof, acceptor: _Acceptor, broker_id: int) -> None:
    await initiator.exchange(cast(PeerChannel, acceptor), broker_id, 5.0)


@run_async
async def test_two_brokers_of_a_cluster_prove_to_each_other() -> None:
    acceptor = _Acceptor(_proof(2))
    await _exchange(_proof(1), acceptor, 2)
    assert acceptor.is_met is True


@run_async
async def test_what_a_broker_serves_is_learned_with_its_proof() -> None:
    acceptor = _Acceptor(_proof(2))
    acceptor.served = [ServedApi(api_key=ApiKey.UPDATE_IMAGE, min_version=1, max_version=2)]
    await _exchange(_proof(1), acceptor, 2)
    assert acceptor.learned == {ApiKey.UPDATE_IMAGE: VersionRange(1, 2)}
    # One of 0.9.0 does not tell.
    earlier = _Acceptor(_proof(2))
    await _exchange(_proof(1), earlier, 2)
    assert earlier.learned.keys() == INTER_BROKER_APIS_AT_FIRST


@pytest.mark.parametrize(
    ("initiator", "expected_id"),
    [
        ({"secret": b"x" * 32}, 2),
        ({"cluster_id": "another"}, 2),
        ({}, 3),
    ],
    ids=["secret", "cluster", "broker"],
)
@run_async
async def test_an_acceptor_that_proves_something_else_is_told_nothing(
    initiator: dict[str, Any], expected_id: int
) -> None:
    acceptor = _Acceptor(_proof(2))
    with pytest.raises(PeerUnavailableError, match=f"there:9092 .* broker {expected_id}"):
        await _exchange(_proof(1, **initiator), acceptor, expected_id)
    assert acceptor.sent == []


@run_async
async def test_a_proof_is_good_for_one_challenge_of_one_pair_of_brokers() -> None:
    acceptor = _Acceptor(_proof(2))
    await _exchange(_proof(1), acceptor, 2)
    (request,) = acceptor.sent
    later = _proof(2, seed=1)
    again = ProveBrokerRequest(broker_id=1, nonce=request.nonce)
    challenge = later.challenge(again)
    assert len(challenge.acceptor_nonce) == NONCE_BYTES
    assert not later.is_met(challenge, request)
    # Nor is the acceptor's own proof that of an initiator.
    own = later.response(challenge)
    reflected = ProveBrokerRequest(broker_id=1, nonce=request.nonce, proof=own.proof)
    assert not later.is_met(challenge, reflected)
    # Nor does it prove another broker than it was made for.
    first = _proof(2)
    replayed = first.challenge(again)
    assert first.is_met(replayed, request)
    request.broker_id = 3
    assert not first.is_met(replayed, request)
    assert not first.is_met(replayed._replace(initiator_id=3), request)


@run_async
async def test_a_nonce_of_another_size_is_no_nonce() -> None:
    class Short(_Acceptor):
        async def send(
            self, request: ProveBrokerRequest, *, timeout_s: float
        ) -> ProveBrokerResponse:
            response = await super().send(request, timeout_s=timeout_s)
            response.nonce = b""
            return response

    acceptor = Short(_proof(2))
    with pytest.raises(PeerUnavailableError):
        await _exchange(_proof(1), acceptor, 2)
    assert acceptor.sent == []
