"""A seed is the same in every process, whatever hashes Python gives to text there."""

from headwater.storage.directories import log_directory
from headwater.storage.directories.directory_entries import DirectoryEntry, list_entries
from headwater.storage.disk.files import FileSystem
from tests.support.hash_seeds import CAMPAIGNS, run_in_processes
from tests.support.tiers import rounds


def test_a_seed_is_the_same_in_every_process() -> None:
    """A single test, since what takes time is to import and to start: it is done once for all."""
    seeds = range(2, 2 + rounds(small=1, full=5))
    first, *others = run_in_processes(range(1, 1 + rounds(2, 3)), list(CAMPAIGNS), seeds)
    for other in others:
        assert other == first
    # Traces that did not tell one seed from another would be the same for no reason.
    assert len(set(first.values())) == len(CAMPAIGNS) * len(seeds)


def load_in_the_order_of_a_set() -> None:
    def list_unordered(files: FileSystem, directory: str) -> list[DirectoryEntry]:
        by_name = {entry.name: entry for entry in list_entries(files, directory)}
        return [by_name[name] for name in set(by_name)]

    log_directory.list_entries = list_unordered  # type: ignore[attr-defined]


def test_an_iteration_over_a_set_of_text_is_found() -> None:
    plant = f"{__name__}:{load_in_the_order_of_a_set.__name__}"
    one, other = run_in_processes((1, 2), ["directories"], range(3), plant)
    assert one.keys() == other.keys()
    assert one != other
