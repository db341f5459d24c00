"""The protocol side of an outgoing connection: which versions to speak, which answer is whose.

It does no input or output: requests come out as parts to send, frames that were received go in.
Each request has a correlation id, which its answer carries; whoever waits for the answer is a
*waiter*, of a kind that this module does not care about.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import Generic, NamedTuple, TypeVar

from headwater.base.errors import ErrorCode
from headwater.net.peer_errors import UnsupportedVersionError
from headwater.net.region import Part
from headwater.wire.api_keys import INTER_BROKER_APIS, ApiKey, VersionRange, response_class
from headwater.wire.codec import MalformedMessageError, decode
from headwater.wire.frames import encode_request, read_response_header
from headwater.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headwater.wire.schema import Message

Waiter = TypeVar("Waiter")

_CORRELATION_ID = Struct(">i")
_ERROR_CODE = Struct(">h")
_CORRELATION_ID_MAX = 2**31 - 1


class _Pending(NamedTuple, Generic[Waiter]):
    api_key: int
    version: int
    waiter: Waiter


class Answer(NamedTuple, Generic[Waiter]):
    """A frame that was received, with what is needed to read it."""

    waiter: Waiter
    api_key: int
    version: int
    frame: memoryview

    def read(self) -> Message:
        """The message; MalformedMessageError if the bytes are none."""
        _, position = read_response_header(self.frame, self.api_key, self.version)
        version = self.version
        if self.api_key == ApiKey.API_VERSIONS and version > 0:
            # A peer that does not know the version answers in version 0, and says so in the error
            # code, which comes first in every version.
            start = bytes(self.frame[position : position + _ERROR_CODE.size])
            if start == _ERROR_CODE.pack(ErrorCode.UNSUPPORTED_VERSION):
                version = 0
        message, _ = decode(response_class(self.api_key), self.frame, version, position)
        return message


class PeerSession(Generic[Waiter]):
    """Requests under way on one connection."""

    def __init__(self, peer: str, client_id: str | None) -> None:
        self._peer = peer
        self._client_id = client_id
        self._pending: dict[int, _Pending[Waiter]] = {}
        self._next_correlation_id = 0
        #: What the peer speaks, by API key; empty until it has been asked.
        self.versions: dict[int, VersionRange] = {}
        #: Whether it has told which of the APIs it serves that are for brokers alone. Before that,
        #: as with the proof itself, it is taken to be of the same release.
        self._has_told_brokers = False

    @property
    def pending_count(self) -> int:
        return len(self._pending)

    def choose_version(self, message: Message, version: int | None = None) -> int:
        """The highest version that both sides speak, or the given one if both do."""
        api_key = ApiKey(message.API_KEY)
        ours = message.VERSIONS
        theirs = self.versions.get(api_key)
        if theirs is None and api_key in INTER_BROKER_APIS and not self._has_told_brokers:
            theirs = ours
        if theirs is None:
            raise UnsupportedVersionError(f"{self._peer} does not serve {api_key.name}.")
        if version is not None:
            if version in ours and version in theirs:
                return version
            raise UnsupportedVersionError(
                f"{api_key.name} version {version} was asked for, but {self._peer} serves "
                f"{theirs.lowest} to {theirs.highest}, and this program {ours.lowest} to "
                f"{ours.highest}."
            )
        highest = min(ours.highest, theirs.highest)
        if highest < max(ours.lowest, theirs.lowest):
            raise UnsupportedVersionError(
                f"{self._peer} serves {api_key.name} in versions {theirs.lowest} to "
                f"{theirs.highest}, this program in {ours.lowest} to {ours.highest}."
            )
        return highest

    def request(self, message: Message, version: int, waiter: Waiter | None) -> list[Part]:
        """The parts of a request to send; without a waiter, no answer is expected."""
        correlation_id = self._next_correlation_id
        self._next_correlation_id = (
            0 if correlation_id == _CORRELATION_ID_MAX else correlation_id + 1
        )
        api_key = message.API_KEY
        parts = encode_request(api_key, version, correlation_id, self._client_id, message)
        if waiter is not None:
            self._pending[correlation_id] = _Pending(api_key, version, waiter)
        return parts

    def response(self, frame: memoryview) -> Answer[Waiter]:
        """Whose answer a frame is; MalformedMessageError if nobody has asked for it."""
        if len(frame) < _CORRELATION_ID.size:
            raise MalformedMessageError("A response is too short to have a correlation id.")
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        pending = self._pending.pop(correlation_id, None)
        if pending is None:
            raise MalformedMessageError(f"Nobody asked for a response {correlation_id}.")
        return Answer(pending.waiter, pending.api_key, pending.version, frame)

    def take_waiters(self) -> list[Waiter]:
        """All who wait; none of them will get an answer."""
        waiters = [pending.waiter for pending in self._pending.values()]
        self._pending.clear()
        return waiters

    # Finding out what the peer speaks.

    def learn_inter_broker_versions(self, versions: Mapping[int, VersionRange]) -> None:
        self.versions.update(versions)
        self._has_told_brokers = True

    def first_versions_request(
        self, software_name: str, software_version: str
    ) -> tuple[ApiVersionsRequest, int]:
        """The first request on a connection, in the newest version that this program has."""
        request = ApiVersionsRequest(
            client_software_name=software_name, client_software_version=software_version
        )
        return request, ApiVersionsRequest.VERSIONS.highest

    def learn_versions(self, response: ApiVersionsResponse) -> int | None:
        """Take note of what the peer speaks; or the version in which it has to be asked again."""
        ranges = {
            row.api_key: VersionRange(row.min_version, row.max_version) for row in response.api_keys
        }
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            theirs = ranges.get(ApiKey.API_VERSIONS, VersionRange(0, 0))
            return min(theirs.highest, ApiVersionsRequest.VERSIONS.highest)
        if response.error_code != ErrorCode.NONE:
            raise UnsupportedVersionError(
                f"{self._peer} does not say what it speaks: "
                f"{ErrorCode.from_wire(response.error_code).message}"
            )
        self.versions = ranges
        return None
