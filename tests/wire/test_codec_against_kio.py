"""The codec against kio, for every message: the same bytes, and the same values back."""

import random

import pytest

from headwater.wire.codec import decode, encode, encode_parts
from headwater.wire.schema import NEVER_FLEXIBLE
from tests.support.tiers import full_tier, rounds
from tests.support.values.kio_messages import MessageKind, kio_bytes, message_kinds, random_pair

KINDS = list(message_kinds())


def chosen_versions(kind: MessageKind, source: random.Random) -> list[int]:
    """All versions, or those where most changes and one more."""
    lowest, highest = kind.versions
    if full_tier():
        return list(range(lowest, highest + 1))
    flexible_since = kind.message_class.FLEXIBLE_SINCE
    chosen = {lowest, highest, source.randint(lowest, highest)}
    if flexible_since != NEVER_FLEXIBLE:
        chosen |= {flexible_since, max(lowest, flexible_since - 1)}
    return sorted(chosen)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_bytes_and_values_are_those_of_kio(kind: MessageKind) -> None:
    source = random.Random(f"codec {kind}")
    for version in chosen_versions(kind, source):
        for round_index in range(rounds(6, 60)):
            where = f"version {version}, round {round_index}"
            pair = random_pair(source, kind, version)
            expected = kio_bytes(pair.theirs)
            assert encode(pair.ours, version) == expected, where
            assert encode_parts(pair.ours, version) == [expected], where
            decoded, position = decode(kind.message_class, expected, version)
            assert decoded == pair.ours, where
            assert position == len(expected), where


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_message_is_found_inside_a_larger_buffer(kind: MessageKind) -> None:
    source = random.Random(f"inside {kind}")
    version = kind.versions.highest
    pair = random_pair(source, kind, version)
    encoded = encode(pair.ours, version)
    surrounded = bytearray(b"\xff" * 5 + encoded + b"\xff" * 7)
    end = 5 + len(encoded)
    for buffer in (surrounded, memoryview(surrounded), bytes(surrounded)):
        assert decode(kind.message_class, buffer, version, 5) == (pair.ours, end)
        assert decode(kind.message_class, buffer, version, 5, end) == (pair.ours, end)
