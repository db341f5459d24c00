"""A peer that speaks just enough of the protocol to test those who connect to it."""

from __future__ import annotations

import asyncio

from headwater.broker.access.broker_proof import BrokerProof
from headwater.net.exchange import Exchange
from headwater.wire.api_keys import SCHEMA_VERSIONS, ApiKey
from headwater.wire.cluster_messages.prove_broker import ProveBrokerRequest
from headwater.wire.codec import decode
from headwater.wire.frames import encode_response, read_request_header
from headwater.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from headwater.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from headwater.wire.messages.metadata import MetadataRequest, MetadataResponse
from headwater.wire.schema import Message


class FakeBroker:
    """Answers ApiVersions and Fetch; metadata requests by the name of the topic they ask for.

    "now": at once. "hold": when the test says so. "close": by closing the connection.
    "garbage": with bytes that are no response. With a `proof` it is a broker to brokers.
    """

    def __init__(self, records: bytes = b"", proof: BrokerProof | None = None) -> None:
        self.records = records
        self.proof = proof
        self.held: list[tuple[Exchange, Message]] = []
        self.seen: list[str] = []
        self.client_software = ""

    def __call__(self, exchange: Exchange) -> None:
        header = read_request_header(exchange.frame)
        key, version, correlation_id = header.api_key, header.api_version, header.correlation_id
        if key == ApiKey.API_VERSIONS:
            self._answer(exchange, ApiVersionsResponse(api_keys=_api_keys()))
        elif key == ApiKey.FETCH:
            partition = PartitionData(records=self.records)
            topic = FetchableTopicResponse(partitions=[partition])
            self._answer(exchange, FetchResponse(responses=[topic]))
        elif key == ApiKey.PROVE_BROKER and self.proof is not None:
            asked, _ = decode(ProveBrokerRequest, exchange.frame, version, header.body_position)
            self._answer(exchange, self.proof.response(self.proof.challenge(asked)))
        elif key == ApiKey.PRODUCE:
            self.seen.append("produce")
            exchange.answer_nothing()
        else:
            request, _ = decode(MetadataRequest, exchange.frame, version, header.body_position)
            name = str(request.topics[0].name) if request.topics else "now"
            self.seen.append(name)
            response = MetadataResponse(cluster_id=name)
            if name.startswith("hold"):
                self.held.append((exchange, response))
            elif name == "close":
                exchange.disconnect("the test wants it")
            elif name == "garbage":
                exchange.answer([b"\0\0\0\x08", correlation_id.to_bytes(4, "big"), b"\xff" * 4])
            elif name == "nobody":
                exchange.answer([b"\0\0\0\x08\x7f\xff\xff\xff\0\0\0\0"])
            else:
                self._answer(exchange, response)

    def release(self, index: int = 0) -> None:
        exchange, response = self.held.pop(index)
        self._answer(exchange, response)

    def _answer(self, exchange: Exchange, response: Message) -> None:
        header = read_request_header(exchange.frame)
        exchange.answer(
            encode_response(header.api_key, header.api_version, header.correlation_id, response)
        )


def _api_keys() -> list[ApiVersion]:
    return [
        ApiVersion(api_key=key, min_version=versions.lowest, max_version=versions.highest)
        for key, versions in SCHEMA_VERSIONS.items()
    ]


async def until(condition: object, timeout_s: float = 10.0) -> None:
    """Wait until a function says yes."""
    assert callable(condition)
    async with asyncio.timeout(timeout_s):
        while not condition():
            await asyncio.sleep(0.001)
