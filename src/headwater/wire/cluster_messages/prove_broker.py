"""ProveBroker (private API 10002, version 0): two brokers prove to each other that they are that.

A conversation of two requests, with which a broker begins every connection to another one. The
first has a nonce and no proof: the answer has the other broker's nonce, and its proof. The second
has the proof of the broker that asks; its answer tells which of the APIs that are for brokers alone
the other one serves, in which versions. Brokers of 0.9.0 do not tell, and pass over it: they serve
`INTER_BROKER_APIS_AT_FIRST`. What a proof is, `broker_proof` tells.
"""

from headwater.wire.schema import NEW, Field, Message, Struct, VersionRange

_V0 = (0, 0)


class ServedApi(Struct):
    __slots__ = ("api_key", "max_version", "min_version")

    def __init__(self, *, api_key: int = 0, min_version: int = 0, max_version: int = 0) -> None:
        self.api_key = api_key
        self.min_version = min_version
        self.max_version = max_version

    FIELDS = (
        Field("api_key", "int16", _V0),
        Field("min_version", "int16", _V0),
        Field("max_version", "int16", _V0),
    )


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
    __slots__ = ("apis", "broker_id", "nonce", "proof")

    def __init__(
        self,
        *,
        broker_id: int = -1,
        nonce: bytes = b"",
        proof: bytes = b"",
        apis: list[ServedApi] = NEW,
    ) -> None:
        self.broker_id = broker_id
        self.nonce = nonce
        self.proof = proof
        self.apis = [] if apis is NEW else apis

    API_KEY = 10_002
    VERSIONS = VersionRange(0, 0)
    FLEXIBLE_SINCE = 0

    FIELDS = (
        Field("broker_id", "int32", _V0),
        Field("nonce", "bytes", _V0),
        Field("proof", "bytes", _V0),
        Field("apis", ServedApi, _V0, array=True, tag=0, tagged=_V0),
    )
