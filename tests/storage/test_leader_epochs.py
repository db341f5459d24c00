import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.checks import InvariantError
from headwater.sim.disk.faulty_disk import FaultyDisk, PowerCut, SimulatedCrash
from headwater.storage.disk.files import read_bytes, write_atomically
from headwater.storage.errors import CorruptCheckpointError
from headwater.storage.leader_epochs import EpochEntry, LeaderEpochs
from tests.support.tiers import rounds

DIRECTORY = "/data/t-0"
PATH = f"{DIRECTORY}/leader-epoch-checkpoint"


def new_disk(seed: int = 0) -> FaultyDisk:
    return FaultyDisk(seed, directories=[DIRECTORY])


def with_entries(*entries: tuple[int, int]) -> LeaderEpochs:
    epochs = LeaderEpochs(new_disk(), DIRECTORY)
    epochs.assign_all(EpochEntry(*entry) for entry in entries)
    return epochs


# -- the notes' two stories, as far as the table goes ---------------------------------------------


def test_a_restarted_follower_keeps_what_its_leader_has() -> None:
    """A and B both hold m1 and m2; A restarts before it hears that the high watermark is 2."""
    a, b = with_entries((0, 0)), with_entries((0, 0))
    a_end = b_end = 2
    answer = b.end_offset_for(a.latest_epoch or 0, b_end)
    assert answer == (0, 2)
    a_end = min(a_end, answer.end_offset)
    assert a_end == 2, "nothing is truncated, m2 survives"

    # B fails and A leads with epoch 1: its records start behind m2.
    a.assign(1, a_end)
    a_end += 1
    assert a.entries == [(0, 0), (1, 2)]
    # B comes back with epoch 0 and hears where that ended.
    assert a.end_offset_for(b.latest_epoch or 0, a_end) == (0, 2)


def test_a_follower_that_was_ahead_drops_what_the_new_leader_never_had() -> None:
    """A leads with m1 and m2, B has only m1; both fail, and B comes back first and leads."""
    a, b = with_entries((0, 0)), with_entries((0, 0))
    a_end, b_end = 2, 1
    b.assign(1, b_end)
    b_end += 1  # m3
    answer = b.end_offset_for(a.latest_epoch or 0, b_end)
    assert answer == (0, 1)
    a_end = min(a_end, answer.end_offset)
    assert a_end == 1, "m2 goes"
    a.truncate_from_end(a_end)
    # A fetches m3, which carries epoch 1.
    a.assign(1, a_end)
    assert a.entries == b.entries == [(0, 0), (1, 1)]


# -- each operation -------------------------------------------------------------------------------


def test_answers_about_the_end_of_an_epoch() -> None:
    epochs = with_entries((2, 10), (4, 20), (7, 35))
    assert epochs.end_offset_for(-1, 50) == (-1, -1), "undefined"
    assert epochs.end_offset_for(7, 50) == (7, 50), "the latest ends where the log does"
    assert epochs.end_offset_for(8, 50) == (-1, -1), "newer than any known"
    assert epochs.end_offset_for(4, 50) == (4, 35)
    assert epochs.end_offset_for(2, 50) == (2, 20)
    assert epochs.end_offset_for(3, 50) == (2, 20), "a gap gives the epoch before it"
    assert epochs.end_offset_for(6, 50) == (4, 35)
    assert epochs.end_offset_for(1, 50) == (1, 10), "before the first: where the first starts"
    assert with_entries().end_offset_for(0, 50) == (-1, -1)


def test_an_epoch_that_is_known_does_not_start_later() -> None:
    epochs = with_entries((0, 0), (1, 10))
    epochs.assign(1, 15)
    assert epochs.entries == [(0, 0), (1, 10)]


def test_an_epoch_without_records_gives_way_to_the_next() -> None:
    epochs = with_entries((0, 0), (1, 10))
    epochs.assign(2, 10)
    assert epochs.entries == [(0, 0), (2, 10)]


def test_entries_that_contradict_a_new_one_are_replaced(caplog: pytest.LogCaptureFixture) -> None:
    epochs = with_entries((0, 0), (1, 10), (2, 20), (5, 30))
    assert not caplog.records
    epochs.assign(3, 15)
    assert epochs.entries == [(0, 0), (1, 10), (3, 15)]
    assert "replaces" in caplog.text
    epochs.assign(3, 12)
    assert epochs.entries == [(0, 0), (1, 10), (3, 12)]
    epochs.assign(0, 50)
    assert epochs.entries == [(0, 50)]


@pytest.mark.parametrize("entry", [(-1, 0), (0, -1)])
def test_epochs_and_offsets_are_not_negative(entry: tuple[int, int]) -> None:
    epochs = with_entries()
    with pytest.raises(InvariantError):
        epochs.assign(*entry)
    assert epochs.entries == []


def test_truncation_from_the_end() -> None:
    epochs = with_entries((0, 0), (1, 10), (2, 20))
    epochs.truncate_from_end(21)
    assert len(epochs.entries) == 3
    epochs.truncate_from_end(20)
    assert epochs.entries == [(0, 0), (1, 10)]
    epochs.truncate_from_end(-1)
    assert len(epochs.entries) == 2
    epochs.truncate_from_end(0)
    assert epochs.entries == []
    assert epochs.latest_epoch is None


def test_truncation_from_the_start_moves_the_epoch_that_is_cut() -> None:
    epochs = with_entries((0, 5), (1, 10), (2, 20))
    epochs.truncate_from_start(3)
    assert epochs.entries == [(0, 5), (1, 10), (2, 20)]
    epochs.truncate_from_start(7)
    assert epochs.entries == [(0, 7), (1, 10), (2, 20)]
    epochs.truncate_from_start(20)
    assert epochs.entries == [(2, 20)]
    epochs.truncate_from_start(99)
    assert epochs.entries == [(2, 99)]


def test_the_epoch_of_an_offset() -> None:
    epochs = with_entries((1, 10), (2, 20))
    assert [epochs.epoch_for_offset(offset) for offset in (9, 10, 19, 20, 999)] == [
        None,
        1,
        1,
        2,
        2,
    ]


# -- the file -------------------------------------------------------------------------------------


def test_the_file_is_kafkas() -> None:
    disk = new_disk()
    epochs = LeaderEpochs(disk, DIRECTORY)
    epochs.assign(0, 0)
    assert read_bytes(disk, PATH) == b"0\n1\n0 0\n"
    epochs.assign(3, 1500)
    assert read_bytes(disk, PATH) == b"0\n2\n0 0\n3 1500\n"
    epochs.clear()
    assert read_bytes(disk, PATH) == b"0\n0\n"


def test_nothing_is_written_when_nothing_changes() -> None:
    disk = new_disk()
    epochs = LeaderEpochs(disk, DIRECTORY)
    epochs.assign(1, 10)
    syncs = disk.sync_count
    for offset in range(10, 100):
        epochs.assign(1, offset)
    epochs.truncate_from_end(50)
    epochs.truncate_from_start(10)
    epochs.flush()
    assert disk.sync_count == syncs


def test_truncations_can_be_written_later() -> None:
    disk = new_disk()
    epochs = LeaderEpochs(disk, DIRECTORY)
    epochs.assign_all([EpochEntry(0, 0), EpochEntry(1, 10)])
    epochs.truncate_from_start(5, flush=False)
    epochs.truncate_from_end(8, flush=False)
    assert LeaderEpochs.load(disk, DIRECTORY).entries == [(0, 0), (1, 10)]
    epochs.flush()
    assert LeaderEpochs.load(disk, DIRECTORY).entries == [(0, 5)]


def test_a_moved_partition_writes_to_its_new_directory() -> None:
    disk = new_disk()
    epochs = LeaderEpochs(disk, DIRECTORY)
    epochs.assign(0, 0)
    disk.rename(DIRECTORY, "/data/t-0.moved")
    epochs.moved_to("/data/t-0.moved")
    epochs.assign(1, 5)
    assert LeaderEpochs.load(disk, "/data/t-0.moved").entries == [(0, 0), (1, 5)]


@pytest.mark.parametrize("line", ["1", "1 2 3", "a 0", "0 b", "-1 0", "0 -1"])
def test_a_malformed_file_is_refused_with_its_line(line: str) -> None:
    disk = new_disk()
    write_atomically(disk, PATH, f"0\n1\n{line}\n".encode())
    with pytest.raises(CorruptCheckpointError, match="line 3"):
        LeaderEpochs.load(disk, DIRECTORY)


@pytest.mark.parametrize("seed", range(rounds(20, 200)))
def test_an_assigned_epoch_survives_a_crash(seed: int) -> None:
    rng = random.Random(seed)
    disk = new_disk(seed)
    epochs = LeaderEpochs(disk, DIRECTORY)
    disk.before_operation = PowerCut(rng.randrange(60))
    assigned: list[tuple[int, int]] = []
    attempted: list[tuple[int, int]] = []
    try:
        for epoch in range(20):
            attempted = [*assigned, (epoch, epoch * 10)]
            epochs.assign(epoch, epoch * 10)
            assigned = attempted
    except SimulatedCrash:
        pass
    found = LeaderEpochs.load(disk.crash(rng), DIRECTORY).entries
    assert found in (assigned, attempted)


# -- against a naive list -------------------------------------------------------------------------


@dataclass
class NaiveEpochs:
    """The same table, with every answer looked up from the front."""

    entries: list[tuple[int, int]] = field(default_factory=list)

    def assign(self, epoch: int, start: int) -> None:
        if self.entries:
            last_epoch, last_start = self.entries[-1]
            if epoch == last_epoch and start >= last_start:
                return
        while self.entries and (self.entries[-1][0] >= epoch or self.entries[-1][1] >= start):
            self.entries.pop()
        self.entries.append((epoch, start))

    def truncate_from_end(self, end: int) -> None:
        self.entries = [(epoch, start) for epoch, start in self.entries if start < end]

    def truncate_from_start(self, log_start: int) -> None:
        gone = [(epoch, start) for epoch, start in self.entries if start <= log_start]
        if gone:
            self.entries = [(gone[-1][0], log_start), *self.entries[len(gone) :]]

    def end_offset_for(self, epoch: int, log_end: int) -> tuple[int, int]:
        if self.entries and epoch == self.entries[-1][0]:
            return epoch, log_end
        higher = [entry for entry in self.entries if entry[0] > epoch]
        lower = [entry for entry in self.entries if entry[0] <= epoch]
        if epoch < 0 or not higher:
            return -1, -1
        return (lower[-1][0] if lower else epoch), higher[0][1]

    def epoch_for_offset(self, offset: int) -> int | None:
        return max((epoch for epoch, start in self.entries if start <= offset), default=None)


operations = st.lists(
    st.one_of(
        st.tuples(st.just("assign"), st.integers(0, 12), st.integers(0, 30)),
        st.tuples(st.just("end"), st.just(0), st.integers(0, 35)),
        st.tuples(st.just("start"), st.just(0), st.integers(0, 35)),
        st.tuples(st.just("reload"), st.just(0), st.just(0)),
    ),
    max_size=25,
)


@given(operations)
def test_any_history_gives_what_a_naive_list_gives(history: list[tuple[str, int, int]]) -> None:
    disk = new_disk()
    epochs, naive = LeaderEpochs(disk, DIRECTORY), NaiveEpochs()
    for operation, epoch, offset in history:
        if operation == "assign":
            epochs.assign(epoch, offset)
            naive.assign(epoch, offset)
        elif operation == "end":
            epochs.truncate_from_end(offset)
            naive.truncate_from_end(offset)
        elif operation == "start":
            epochs.truncate_from_start(offset)
            naive.truncate_from_start(offset)
        else:
            epochs = LeaderEpochs.load(disk, DIRECTORY)
        assert epochs.entries == naive.entries
        assert epochs.latest_epoch == (naive.entries[-1][0] if naive.entries else None)
        for asked in range(-1, 14):
            assert epochs.end_offset_for(asked, 40) == naive.end_offset_for(asked, 40)
        for asked in range(36):
            assert epochs.epoch_for_offset(asked) == naive.epoch_for_offset(asked)
