"""ProveBroker (private API 10002, version 0): two brokers prove to each other that they are that.

A conversation of two requests, with which a broker begins every connection to another one. The
first has a nonce and no proof: the answer has the other broker's nonce, and its proof. The second
has the proof of the broker that asks; its answer is empty. What a proof is, `broker_proof` tells.
"""

from headwater.wire.schema import Field, Message, VersionRange

_V0 = (0, 0)


class ProveBrokerRequest(Message):
    __slots__ = ("broker_id", "nonce", "proof")

    def __init__(self, *, broker_id: int = -1, nonce: bytes = b"", proof: bytes = b"") -> None:
        self.broker_id = broker_id
        self.nonce = nonce
        self.proof = proof

    API_KEY = 10_002
    VERSIONS = VersionRange(0, 0)
    FLEXIBLE_SINCE = 0

    FIELDS = (
        Field("broker_id", "int32", _V0),
        Field("nonce", "bytes", _V0),
        Field("proof", "bytes", _V0),
    )


class ProveBrokerResponse(Message):
    __slots__ = ("broker_id", "nonce", "proof")

    def __init__(self, *, broker_id: int = -1, nonce: bytes = b"", proof: bytes = b"") -> None:
        self.broker_id = broker_id
        self.nonce = nonce
        self.proof = proof

    API_KEY = 10_002
    VERSIONS = VersionRange(0, 0)
    FLEXIBLE_SINCE = 0

    FIELDS = (
        Field("broker_id", "int32", _V0),
        Field("nonce", "bytes", _V0),
        Field("proof", "bytes", _V0),
    )
