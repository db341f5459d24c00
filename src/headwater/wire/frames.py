"""Request and response frames: a length, a header, and a message.

    request   length:int32  key:int16  version:int16  correlation id:int32  client id  [tags]  body
    response  length:int32  correlation id:int32  [tags]  body

The headers have tagged fields if the version of the API is flexible, with one exception: a response
to ApiVersions never does, because its reader may not know yet what the writer can speak. The client
id has the classic encoding in every version, so that a header can be read up to there, whatever the
API. No tagged field of a header is known, so they are skipped, and never written.
"""

import struct
from typing import Final, NamedTuple

from headwater.base.region import Buffer, Part
from headwater.wire.api_keys import ApiKey
from headwater.wire.codec import encode_pieces
from headwater.wire.reader_source import MalformedMessageError, skip_tags
from headwater.wire.schema import NEVER_FLEXIBLE, Message

_REQUEST_START: Final = struct.Struct(">hhih")
_REQUEST_PREFIX: Final = struct.Struct(">ihhih")
_CORRELATION_ID: Final = struct.Struct(">i")
_RESPONSE_PREFIX: Final = struct.Struct(">ii")
_FLEXIBLE_RESPONSE_PREFIX: Final = struct.Struct(">iix")

_NO_TAGS: Final = b"\0"

_FLEXIBLE_REQUESTS_SINCE: Final = {int(key): key.flexible_since for key in ApiKey}
_FLEXIBLE_RESPONSES_SINCE: Final = {
    key: NEVER_FLEXIBLE if key == ApiKey.API_VERSIONS else flexible_since
    for key, flexible_since in _FLEXIBLE_REQUESTS_SINCE.items()
}


class RequestHeader(NamedTuple):
    """What every request begins with; `body_position` is where its message starts in the frame."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_position: int


def api_key_of(frame: Buffer) -> int | None:
    """The API of a request, without reading the rest of it; None if the frame is too short."""
    return int.from_bytes(frame[:2], "big", signed=True) if len(frame) >= 2 else None


def read_request_header(frame: Buffer) -> RequestHeader:
    """The header of a frame, which comes without its length.

    The API may be unknown, or its version: then `body_position` is where the client id ends.
    """
    try:
        api_key, api_version, correlation_id, client_id_size = _REQUEST_START.unpack_from(frame)
        position = _REQUEST_START.size
        client_id = None
        if client_id_size >= 0:
            client_id_end = position + client_id_size
            if client_id_end > len(frame):
                raise MalformedMessageError("The client id is longer than the request.")
            client_id = str(frame[position:client_id_end], "utf-8")
            position = client_id_end
        if api_version >= _FLEXIBLE_REQUESTS_SINCE.get(api_key, NEVER_FLEXIBLE):
            # A zero, for no tags, is all that clients send here.
            position = skip_tags(frame, position, len(frame)) if frame[position] else position + 1
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise MalformedMessageError(f"The header of a request is malformed: {error}.") from error
    return RequestHeader(api_key, api_version, correlation_id, client_id, position)


def encode_request(
    api_key: int, version: int, correlation_id: int, client_id: str | None, message: Message
) -> list[Part]:
    """A whole request, with its length in front."""
    encoded_id = b"" if client_id is None else client_id.encode()
    id_size = -1 if client_id is None else len(encoded_id)
    tags = _NO_TAGS if version >= _FLEXIBLE_REQUESTS_SINCE[api_key] else b""
    parts, pieces = encode_pieces(message, version)
    # The fixed part has the length itself in it, which does not count.
    size = _REQUEST_PREFIX.size - 4 + len(encoded_id) + len(tags) + _size_of(parts, pieces)
    prefix = _REQUEST_PREFIX.pack(size, api_key, version, correlation_id, id_size)
    return _with_prefix(prefix + encoded_id + tags, parts, pieces)


def encode_response(
    api_key: int, version: int, correlation_id: int, message: Message
) -> list[Part]:
    """A whole response, with its length in front."""
    parts, pieces = encode_pieces(message, version)
    prefix = _RESPONSE_PREFIX
    if version >= _FLEXIBLE_RESPONSES_SINCE[api_key]:
        prefix = _FLEXIBLE_RESPONSE_PREFIX
    size = prefix.size - 4 + _size_of(parts, pieces)
    return _with_prefix(prefix.pack(size, correlation_id), parts, pieces)


def read_response_header(frame: Buffer, api_key: int, version: int) -> tuple[int, int]:
    """The correlation id of a frame without its length, and where its message starts."""
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        position = _CORRELATION_ID.size
        if version >= _FLEXIBLE_RESPONSES_SINCE[api_key]:
            position = skip_tags(frame, position, len(frame))
    except (struct.error, IndexError) as error:
        raise MalformedMessageError(f"The header of a response is malformed: {error}.") from error
    return correlation_id, position


def _size_of(parts: list[Part], pieces: list[bytes]) -> int:
    size = sum(map(len, pieces))
    for part in parts:
        size += len(part) if isinstance(part, (bytes, bytearray, memoryview)) else part.size
    return size


def _with_prefix(prefix: bytes, parts: list[Part], pieces: list[bytes]) -> list[Part]:
    if not parts:
        # One join, so that a producer's records are copied once and not twice.
        pieces.insert(0, prefix)
        return [b"".join(pieces)]
    if pieces:
        parts.append(b"".join(pieces))
    first = parts[0]
    if isinstance(first, bytes):
        parts[0] = prefix + first
        return parts
    return [prefix, *parts]
