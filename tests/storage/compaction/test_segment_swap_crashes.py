"""Passes that crash at any moment, and the mistakes that must not go unnoticed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from random import Random

import pytest

from headwater.sim.disk.faults import CHANGES
from headwater.sim.disk.faulty_disk import FaultyDisk, PowerCut, SimulatedCrash
from headwater.storage.compaction import cleaned_segment
from headwater.storage.compaction.compaction_job import CleanedGroup
from headwater.storage.compaction.segment_swap import CompactionTicket, SegmentSwap
from headwater.storage.disk.files import FileSystem
from headwater.storage.recovery import loader as log_loader
from headwater.storage.recovery.interrupted_changes import finish_interrupted_changes
from headwater.storage.segments.segment_files import (
    CLEANED,
    DELETED,
    LOG,
    SEGMENT_SUFFIXES,
    segment_path,
)
from tests.support.models.compaction import DIRECTORY, CompactedLog, RecoveryPoint
from tests.support.models.compaction_steps import twice_dirtied
from tests.support.tiers import rounds


class Crashes:
    """At each change that a pass makes on disk: what would be found if the power went there?"""

    def __init__(
        self, scenario: CompactedLog, seed: int, share: float, goes_on: bool, twice: bool
    ) -> None:
        self._scenario = scenario
        self._rng = Random(seed)
        self._share = share
        self._goes_on = goes_on
        self._twice = twice
        self.count = 0

    def __call__(self, operation: str, path: str) -> None:
        if operation in CHANGES and self._rng.random() < self._share:
            self.look()

    def look(self) -> None:
        disk = self._scenario.files
        assert isinstance(disk, FaultyDisk)
        hook, disk.before_operation = disk.before_operation, None
        try:
            checkpoint = RecoveryPoint(self._rng.choice((0, self._scenario.log.recovery_point)))
            after = disk.after_power_loss(self._rng)
            if self._twice:
                after = self._crash_on_loading(after, checkpoint)
            found = self._scenario.found_on(after, checkpoint)
            found.check(is_settled=False)
            if self._goes_on:
                found.log.flush()
                found.compact()
                found.check()
        finally:
            disk.before_operation = hook
        self.count += 1

    def _crash_on_loading(self, disk: FaultyDisk, checkpoint: RecoveryPoint) -> FaultyDisk:
        """The power goes once more, while the first loss is being put right."""
        disk.before_operation = PowerCut(self._rng.randrange(20))
        with contextlib.suppress(SimulatedCrash):
            self._scenario.found_on(disk, checkpoint)
        return disk.crash(self._rng)


def compact_with_crashes(
    scenario: CompactedLog,
    seed: int,
    share: float = 1.0,
    *,
    goes_on: bool = True,
    twice: bool = False,
) -> int:
    """A pass, looked at wherever the power could go; returns at how many places."""
    disk = scenario.files
    assert isinstance(disk, FaultyDisk)
    disk.before_operation = crashes = Crashes(scenario, seed, share, goes_on, twice)
    before = scenario.stored
    result = scenario.compact()
    assert result is not None
    disk.before_operation = None
    # The hook compares with the model of before the pass.
    after, scenario.stored = scenario.stored, before
    crashes.look()
    scenario.stored = after
    scenario.check()
    scenario.reopen()
    scenario.check()
    return crashes.count


def test_a_crash_anywhere_leaves_a_sound_log() -> None:
    for seed in range(rounds(small=3, full=20)):
        try:
            count = compact_with_crashes(twice_dirtied(seed), seed, share=rounds(1, 4) / 4)
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
        assert count > 5


def test_a_crash_while_another_is_put_right_leaves_a_sound_log() -> None:
    for seed in (9, 12, *range(rounds(small=0, full=20))):
        try:
            compact_with_crashes(twice_dirtied(seed), seed, goes_on=False, twice=True)
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error


# -- mistakes --------------------------------------------------------------------------------------
#
# Each of these is a way in which a swap could be wrong, and stays here so that the checks above are
# known to notice it.


#: The first of these notices most of them.
SEEDS = (2, 0, 1, 3, 4, 5)


class RetiresTooEarly(SegmentSwap):
    """The old segments go before the new one is durable under a name that will be finished."""

    def _run(self) -> Iterator[bool]:
        log = self._log
        for base_offset in self._group.old_base_offsets:
            for suffix in SEGMENT_SUFFIXES:
                path = segment_path(DIRECTORY, base_offset, suffix)
                if log.files.exists(path):
                    log.files.rename(path, path + DELETED)
        yield True
        yield from super()._run()


class SkipsSync(SegmentSwap):
    """One of the syncs of the directory is missing."""

    skipped = 0

    def finish(self) -> bool:
        self._begin()
        while not self.is_done:
            if self._step_count != self.skipped:
                self._log.files.sync_dir(self._log.directory)
            self._advance()
        return self.is_in_place


class SkipsFirstSync(SkipsSync):
    skipped = 1


class SkipsSecondSync(SkipsSync):
    skipped = 2


class KeepsOldIndexes(SegmentSwap):
    """Only the log file is swapped, and the indexes of the first old segment stay beside it."""

    def _name_swap(self) -> None:
        files = self._log.files
        for suffix in SEGMENT_SUFFIXES:
            live, cleaned = self._path(suffix, ""), self._path(suffix, CLEANED)
            if suffix != LOG and files.exists(cleaned):
                old = files.open(live)
                new = files.open(cleaned, create=True)
                new.truncate(0)
                new.write_at(0, old.read_at(0, old.size()))
                new.sync()
                old.close()
                new.close()
        super()._name_swap()


def swap_with(kind: type[SegmentSwap], scenario: CompactedLog) -> CompactedLog:
    def swap(ticket: CompactionTicket, group: CleanedGroup, now_ms: int) -> bool:
        return kind(ticket, group, now_ms).finish()

    scenario.swap = swap
    return scenario


def is_noticed(kind: type[SegmentSwap], seed: int) -> bool:
    try:
        compact_with_crashes(swap_with(kind, twice_dirtied(seed)), seed, goes_on=False)
    except Exception:
        return True
    return False


@pytest.mark.parametrize(
    "kind", [RetiresTooEarly, SkipsFirstSync, SkipsSecondSync, KeepsOldIndexes]
)
def test_a_wrong_swap_is_noticed(kind: type[SegmentSwap]) -> None:
    assert any(is_noticed(kind, seed) for seed in SEEDS)


def test_unsynced_content_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def finish(self: cleaned_segment.CleanedSegment) -> None:
        self._write()
        self._segment.seal()

    monkeypatch.setattr(cleaned_segment.CleanedSegment, "finish", finish)
    assert any(is_noticed(SegmentSwap, seed) for seed in SEEDS)


def test_trust_in_indexes_of_a_swap_cut_short_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def finish_and_trust(files: FileSystem, directory: str) -> set[int]:
        finish_interrupted_changes(files, directory)
        return set()

    monkeypatch.setattr(log_loader, "finish_interrupted_changes", finish_and_trust)
    assert any(is_noticed(SegmentSwap, seed) for seed in SEEDS)
