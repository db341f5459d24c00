"""Steps that tests of compaction take, as values that a strategy or a seed can draw."""

from __future__ import annotations

from random import Random

from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.wire.records import Compression
from tests.support.models.compaction import CompactedLog


def perform(scenario: CompactedLog, operation: tuple[object, ...]) -> None:
    match operation:
        case ("append", list(pairs), Compression() as codec):
            scenario.append(*pairs, compression=codec)
        case ("produce", int(producer_id), list(pairs), Compression() as codec):
            scenario.append(*pairs, compression=codec, producer_id=producer_id)
        case ("transact", int(producer_id), list(pairs), Compression() as codec):
            scenario.append(*pairs, compression=codec, producer_id=producer_id, transactional=True)
        case ("end", int(producer_id), bool(commit)):
            if producer_id in scenario.open_transactions:
                scenario.end_transaction(producer_id, commit=commit)
        case ("compact", int(key_count)):
            scenario.seal()
            while scenario.compact(key_count_max=key_count) is not None:
                scenario.check()
        case ("wait", int(duration_ms)):
            scenario.now_ms += duration_ms
        case ("reopen", bool(from_scratch)):
            scenario.reopen(from_scratch=from_scratch)
        case _:
            raise AssertionError(operation)


def random_operation(rng: Random) -> tuple[object, ...]:
    """Denser in transactions than what the strategies draw, and with keys that come back."""
    pairs = [
        (rng.choice([b"a", b"b", b"c", b"d"]), rng.choice([None, b"v", b"w", bytes(60)]))
        for _ in range(rng.randrange(1, 4))
    ]
    codec = rng.choice([Compression.NONE, Compression.NONE, Compression.LZ4])
    return rng.choices(
        [
            ("append", pairs, codec),
            ("produce", rng.randrange(1, 3), pairs, codec),
            ("transact", rng.randrange(10, 14), pairs, codec),
            ("end", rng.randrange(10, 14), rng.random() < 0.4),
            ("compact", rng.choice([1, 2, 4, 100])),
            ("wait", 600),
            ("reopen", rng.random() < 0.6),
        ],
        [4, 2, 10, 9, 3, 3, 1],
    )[0]


def twice_dirtied(seed: int) -> CompactedLog:
    """A log that was compacted before, and is dirty again."""
    rng = Random(seed)
    scenario = CompactedLog(FaultyDisk(seed, directories=["/data"]))
    for _ in range(2):
        for _ in range(25):
            operation = random_operation(rng)
            if operation[0] not in ("compact", "reopen"):
                perform(scenario, operation)
        for producer_id in sorted(scenario.open_transactions):
            scenario.end_transaction(producer_id, commit=rng.random() < 0.5)
        scenario.seal()
        if scenario.first_dirty_offset == 0:
            scenario.compact()
            scenario.log.flush()
    return scenario
