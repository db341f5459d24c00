"""What a peer may send that no client would, as bytes for a connection.

A case is a list of chunks to write, in order, and may end in the middle of a frame. Its kind says
how it came about; kind, seed and number are enough to make it again.
"""

import random
import struct
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from headwater.sim.hostile.messages import RandomMessages
from headwater.wire.api_keys import FLEXIBLE_SINCE, ApiKey, VersionRange, request_class
from headwater.wire.codec import encode

_INTERESTING: Final = (
    b"\x00",
    b"\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xff",
    b"\x00\x00\x00\x00",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x7f\xff",
)


class HostileCase(NamedTuple):
    kind: str
    chunks: list[bytes]
    #: Whether the bytes are whole frames of requests that could be read, if not obeyed.
    is_well_formed: bool = False


class HostileFrames:
    """Draws cases; the same seed gives the same ones."""

    def __init__(
        self,
        source: random.Random,
        messages: RandomMessages,
        served: Sequence[tuple[ApiKey, VersionRange]],
    ) -> None:
        self._random = source
        self._messages = messages
        self._served = served
        self._kinds: tuple[tuple[int, Callable[[], HostileCase]], ...] = (
            (10, self.strange_request),
            (14, self.mutated_request),
            (4, self.pipelined_requests),
            (2, self.noise),
            (2, self.noise_with_length),
            (2, self.absurd_length),
            (2, self.cut_short),
            (2, self.unknown_api),
            (2, self.unknown_version),
            (2, self.unknown_tags),
            (1, self.dripping_request),
            (1, self.huge_array),
        )

    def case(self) -> HostileCase:
        weights = [weight for weight, _ in self._kinds]
        [(_, make)] = self._random.choices(self._kinds, weights)
        return make()

    def covering_case(self, number: int) -> HostileCase:
        """A request of the API and version of that number, counted round and round: all get theirs.

        It is as it should be, or changed, or its length is not what it says.
        """
        pairs = served_pairs(self._served)
        self._served = [pairs[number % len(pairs)]]
        kinds = (self.strange_request, self.mutated_request, self.lying_length)
        return self._random.choice(kinds)()

    # -- requests ----------------------------------------------------------------------------------

    def request(self, *, client_id: str | None = "fuzz") -> tuple[ApiKey, int, bytes]:
        """A request that can be read, without its length."""
        api_key, versions = self._random.choice(self._served)
        version = self._random.randint(*versions)
        body = encode(self._messages.message(request_class(api_key), version), version)
        return api_key, version, self._header(api_key, version, client_id) + body

    def _header(
        self, api_key: int, version: int, client_id: str | None, tags: bytes = b""
    ) -> bytes:
        name = b"\xff\xff"
        if client_id is not None:
            encoded = client_id.encode()
            name = struct.pack(">h", len(encoded)) + encoded
        correlation_id = self._random.getrandbits(31)
        header = struct.pack(">hhi", api_key, version, correlation_id) + name
        flexible = api_key in FLEXIBLE_SINCE and version >= FLEXIBLE_SINCE[ApiKey(api_key)]
        return header + (tags or b"\x00") if flexible else header

    def strange_request(self) -> HostileCase:
        """A message that can be read, whatever it says."""
        api_key, version, frame = self.request()
        return HostileCase(f"{api_key.name} v{version}", [_framed(frame)], is_well_formed=True)

    def mutated_request(self) -> HostileCase:
        api_key, version, frame = self.request()
        mutated = bytearray(frame)
        for _ in range(self._random.choice((1, 1, 1, 2, 4, 10))):
            self._mutate(mutated)
        return HostileCase(f"{api_key.name} v{version} mutated", [_framed(bytes(mutated))])

    def _mutate(self, frame: bytearray) -> None:
        # The first eight bytes are key, version and correlation id: most mutations leave them.
        start = 8 if self._random.random() < 0.9 else 0
        position = self._random.randint(min(start, len(frame)), len(frame))
        match self._random.randrange(5):
            case 0 if position < len(frame):
                frame[position] ^= 1 << self._random.randrange(8)
            case 1:
                value = self._random.choice(_INTERESTING)
                frame[position : position + len(value)] = value
            case 2:
                frame[position:position] = self._random.choice(_INTERESTING)
            case 3:
                del frame[position : position + self._random.choice((1, 2, 4, 100))]
            case _:
                frame += self._random.randbytes(self._random.choice((1, 3, 50)))

    def pipelined_requests(self) -> HostileCase:
        """Many requests at once, some of which are bad, cut at odd places."""
        count = self._random.randint(2, 30)
        frames = [self.request()[2] for _ in range(count)]
        stream = b"".join(map(_framed, frames))
        if self._random.random() < 0.5:
            stream += self.mutated_request().chunks[0] + _framed(self.request()[2])
        cuts = sorted(self._random.randrange(len(stream)) for _ in range(3))
        starts, ends = [0, *cuts], [*cuts, len(stream)]
        chunks = [stream[start:end] for start, end in zip(starts, ends, strict=True)]
        return HostileCase(f"{count} requests", chunks)

    def dripping_request(self) -> HostileCase:
        """A request that comes byte by byte."""
        api_key, version, frame = self.request()
        stream = _framed(frame)[:200]
        chunks = [stream[i : i + 1] for i in range(len(stream))]
        return HostileCase(f"{api_key.name} v{version} in drops", chunks)

    def unknown_tags(self) -> HostileCase:
        """A header with tagged fields from the future, and the same at the end of the body."""
        flexible = [
            (key, versions) for key, versions in self._served if versions[1] >= FLEXIBLE_SINCE[key]
        ]
        api_key, versions = self._random.choice(flexible)
        version = versions[1]
        body = encode(self._messages.message(request_class(api_key), version), version)
        value = self._random.randbytes(5)
        tags = b"\x02" + b"\x64\x05" + value + b"\xc8\x01\x05" + value
        if self._random.random() < 0.5:
            body = body[:-1] + tags
        return HostileCase(
            f"{api_key.name} v{version} with unknown tags",
            [_framed(self._header(api_key, version, "fuzz", tags) + body)],
            is_well_formed=True,
        )

    def huge_array(self) -> HostileCase:
        """A body that begins with an array of as many elements as a number can count."""
        api_key, versions = self._random.choice(self._served)
        version = self._random.randint(*versions)
        length = self._random.choice(
            (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x0f", b"\x00\x0f\xff")
        )
        padding = bytes(self._random.choice((0, 10, 100_000)))
        frame = self._header(api_key, version, "fuzz") + length + padding
        return HostileCase(f"{api_key.name} v{version} with a huge array", [_framed(frame)])

    # -- frames ------------------------------------------------------------------------------------

    def noise(self) -> HostileCase:
        return HostileCase("noise", [self._random.randbytes(self._random.randint(1, 400))])

    def noise_with_length(self) -> HostileCase:
        noise = self._random.randbytes(self._random.randint(0, 400))
        return HostileCase("noise in a frame", [_framed(noise)])

    def absurd_length(self) -> HostileCase:
        length = self._random.choice(
            (-1, -(2**31), 0, 1, 3, 7, 2**31 - 1, 101 << 20, 100 << 20, 99 << 20)
        )
        return HostileCase(
            f"a frame of {length} bytes", [struct.pack(">i", length), self._random.randbytes(50)]
        )

    def lying_length(self) -> HostileCase:
        """A request that says that it is a little longer or shorter than it is."""
        api_key, version, frame = self.request()
        length = max(1, len(frame) + self._random.choice((-100, -4, -1, 1, 4, 100)))
        return HostileCase(
            f"{api_key.name} v{version} with a lying length", [struct.pack(">i", length) + frame]
        )

    def cut_short(self) -> HostileCase:
        api_key, version, frame = self.request()
        stream = _framed(frame)
        stream = stream[: self._random.randrange(len(stream))]
        return HostileCase(f"{api_key.name} v{version} cut short", [stream])

    def unknown_api(self) -> HostileCase:
        key = self._random.choice((-1, -(2**15), 4, 5, 6, 7, 59, 93, 1000, 2**15 - 1))
        header = self._header(key, self._random.randint(-1, 5), "fuzz")
        return HostileCase(f"API {key}", [_framed(header + self._random.randbytes(30))])

    def unknown_version(self) -> HostileCase:
        api_key, versions = self._random.choice(self._served)
        version = self._random.choice((-1, -(2**15), versions[1] + 1, 2**15 - 1, versions[0] - 1))
        header = self._header(api_key, version, "fuzz")
        return HostileCase(
            f"{api_key.name} v{version}", [_framed(header + self._random.randbytes(30))]
        )


def served_pairs(
    served: Sequence[tuple[ApiKey, VersionRange]],
) -> list[tuple[ApiKey, VersionRange]]:
    """Each API with each of its versions."""
    return [
        (api_key, VersionRange(version, version))
        for api_key, versions in served
        for version in range(versions.lowest, versions.highest + 1)
    ]


def _framed(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame
