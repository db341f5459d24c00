"""A broker's directories against their model, over many seeds, crashes included."""

import pytest

from headwater.sim.campaigns.directory import DirectoryCampaign, remains
from headwater.storage.directories.directory_checkpoints import (
    CheckpointTable,
    DirectoryCheckpoints,
)
from headwater.storage.directories.directory_ownership import DirectoryOwnership
from headwater.storage.directories.future_log import FutureLog
from headwater.storage.directories.log_creation import LogDeletion
from tests.support.tiers import rounds


@pytest.mark.parametrize("group", range(4))
def test_directories_equal_their_model_through_crashes(group: int) -> None:
    seeds_per_group = rounds(small=15, full=150)
    crash_count = 0
    for seed in range(group * seeds_per_group, (group + 1) * seeds_per_group):
        campaign = DirectoryCampaign(seed)
        campaign.run(80)
        crash_count += campaign.crash_count
        campaign.now_ms += 1_000
        campaign.maintenance.tasks["removal"].run_now(campaign.now_ms)
        assert remains(campaign.disk) == [], f"seed {seed}"
    assert crash_count > 2 * seeds_per_group  # The campaign would prove little without crashes.


# -- planted bugs: the campaign must find each of them ---------------------------------------------


def _do_nothing(*_arguments: object) -> None:
    """What a forgotten step does."""


def _mark_clean_too_early(self: DirectoryOwnership) -> None:
    self.mark_clean(1)


@pytest.mark.parametrize(
    ("owner", "method", "replacement"),
    [
        pytest.param(LogDeletion, "run", _do_nothing, id="a deletion is not made durable"),
        pytest.param(DirectoryCheckpoints, "forget", _do_nothing, id="old offsets are believed"),
        pytest.param(CheckpointTable, "keep", _do_nothing, id="truncations are not on record"),
        pytest.param(DirectoryOwnership, "begin_changes", _do_nothing, id="the marker stays"),
        pytest.param(
            DirectoryOwnership, "mark_in_use", _mark_clean_too_early, id="the marker comes early"
        ),
        pytest.param(FutureLog, "follow_truncation", _do_nothing, id="a copy keeps what was cut"),
    ],
)
def test_a_planted_bug_is_found(
    owner: type, method: str, replacement: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, method, replacement)
    # The loader mends much by itself, so few seeds tell. The first are known to; if they do not any
    # more, one of the others will.
    for seed in (1_932, 1_939, 2_014, *range(1_900, 2_500), *range(1_000)):
        try:
            DirectoryCampaign(seed).run(80)
        except AssertionError as found:
            assert str(found).startswith(f"seed {seed}")
            return
    pytest.fail("1,600 seeds found nothing wrong")
