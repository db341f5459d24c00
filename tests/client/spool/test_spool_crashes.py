"""A spool on a disk that forgets and tears what was not made durable, against a simple model."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from headwater.client.spool.errors import SpoolDamagedError
from headwater.client.spool.files.position_file import PositionFile
from headwater.client.spool.files.reader import NumberedRecord, SpoolReader
from headwater.client.spool.spool import FsyncPolicy, Spool
from headwater.sim.disk.faulty_disk import FaultyDisk, PowerCut, SimulatedCrash
from tests.support.logs.spools import contents, record, undamaged_contents
from tests.support.tiers import rounds

_DIRECTORY = "/spool"


class _Model:
    """What a user of the spool knows, over all its crashes."""

    def __init__(self) -> None:
        self.appended: dict[int, bytes] = {}
        #: All that ever was: without fsync even a file that was deleted may come back.
        self.history: set[tuple[int, bytes | None]] = set()
        #: Values whose append did not return: they may be there or not.
        self.unsure: set[bytes] = set()
        self.advanced = 0
        self.unsure_advance = 0
        #: All before it was forced to disk.
        self.synced_number = 0


def _open(disk: FaultyDisk, policy: FsyncPolicy) -> Spool:
    spool = Spool(_DIRECTORY, files=disk, fsync=policy, segment_bytes=300)
    if spool._interval_sync is not None:
        # The test syncs now and then, and the simulated disk knows no threads.
        spool._interval_sync.close()
        spool._interval_sync = None
    return spool


def _work(disk: FaultyDisk, model: _Model, rng: Random, policy: FsyncPolicy) -> None:
    """Some appends and advances; ends with the power."""
    spool = _open(disk, policy)
    _check(spool, model, policy)
    reader = SpoolReader(spool, spool.position)
    while True:
        if rng.random() < 0.6:
            value = rng.randbytes(rng.randrange(80))
            model.unsure.add(value)
            number = spool.append(record(value))
            model.unsure.discard(value)
            model.appended[number] = value
            model.history.add((number, value))
            if policy is FsyncPolicy.ALWAYS:
                model.synced_number = number + 1
        elif policy is FsyncPolicy.INTERVAL and rng.random() < 0.1:
            spool.sync()
            model.synced_number = spool.next_number
        elif (numbered := _read(reader, policy)) is not None:
            model.unsure_advance = numbered.number + 1
            spool.advance(numbered.number + 1)
            model.advanced = numbered.number + 1


def _read(reader: SpoolReader, policy: FsyncPolicy) -> NumberedRecord | None:
    try:
        return reader.read()
    except SpoolDamagedError:
        assert policy is FsyncPolicy.NEVER
        return None


def _check(spool: Spool, model: _Model, policy: FsyncPolicy) -> None:
    is_strict = policy is not FsyncPolicy.NEVER
    found = contents(spool) if is_strict else undamaged_contents(spool)
    numbers = [number for number, _ in found]
    assert numbers == sorted(set(numbers))
    history = model.history
    for number, value in found:
        is_known = model.appended.get(number) == value if is_strict else (number, value) in history
        assert is_known or value in model.unsure
    if is_strict:
        assert model.advanced <= spool.position <= max(model.unsure_advance, model.advanced)
        assert numbers == list(range(spool.position, spool.next_number))
        durable = range(spool.position, model.synced_number)
        assert [number for number in durable if number not in set(numbers)] == []
    # What is lost is lost for good, and its numbers are used again; what was unsure is known now.
    model.appended = {number: value for number, value in found if value is not None}
    history.update(found)
    model.unsure.clear()
    model.advanced = model.unsure_advance = spool.position
    model.synced_number = spool.next_number


@given(st.integers(0, 2**32), st.sampled_from(FsyncPolicy))
def test_power_losses_lose_nothing_that_was_made_durable(seed: int, policy: FsyncPolicy) -> None:
    rng = Random(seed)
    disk = FaultyDisk(seed, directories=[_DIRECTORY])
    model = _Model()
    for _ in range(rounds(4, 8)):
        disk.before_operation = PowerCut(rng.randrange(120))
        try:
            _work(disk, model, rng, policy)
        except SimulatedCrash:
            disk = disk.crash(rng)
    _check(_open(disk, policy), model, policy)


@given(st.integers(0, 2**32), st.sampled_from(FsyncPolicy))
def test_the_end_of_the_process_alone_loses_nothing(seed: int, policy: FsyncPolicy) -> None:
    rng = Random(seed)
    disk = FaultyDisk(seed, directories=[_DIRECTORY])
    model = _Model()
    for _ in range(rounds(4, 8)):
        disk.before_operation = PowerCut(rng.randrange(120))
        try:
            _work(disk, model, rng, policy)
        except SimulatedCrash:
            disk = disk.after_process_end()
            # The kernel keeps what a killed process wrote, so the strict rules hold without fsync.
            model.synced_number = max([model.synced_number, *(n + 1 for n in model.appended)])
            spool = _open(disk, policy)
            _check(spool, model, FsyncPolicy.ALWAYS)
            disk = disk.after_process_end()


@given(st.integers(0, 2**32))
def test_a_position_is_never_unreadable_and_never_falls_back(seed: int) -> None:
    rng = Random(seed)
    disk = FaultyDisk(seed, directories=[_DIRECTORY])
    written = attempted = 0
    for _ in range(5):
        disk.before_operation = PowerCut(rng.randrange(12))
        try:
            position = PositionFile(disk, _DIRECTORY, is_synced=True)
            assert written <= (position.number or 0) <= attempted
            written = position.number or 0
            while True:
                attempted = written + rng.randrange(1, 1000)
                position.write(attempted)
                written = attempted
        except SimulatedCrash:
            disk = disk.crash(rng)
    number = PositionFile(disk, _DIRECTORY, is_synced=True).number or 0
    assert written <= number <= attempted
