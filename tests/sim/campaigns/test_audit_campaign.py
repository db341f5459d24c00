"""The audit's counts are those of the logs, through whatever befalls a cluster; and bugs show."""

from collections.abc import Callable, Sequence

import pytest

from headwater.audit.batch_counts import BatchCounts
from headwater.audit.rows import NO_EPOCH, Row
from headwater.audit.shard import NOTHING_PUBLISHED, AuditShard, Published, Stretch
from headwater.audit.source import Source
from headwater.coordinator.outcome import Change
from headwater.coordinator.stored_record import StoredRecord
from headwater.sim.campaigns.audit import AuditCampaign
from headwater.wire.records import BatchHeader
from tests.support.tiers import rounds

#: A bug that this many seeds do not find would stay hidden.
SEEDS_MAX = 40

Plant = Callable[[pytest.MonkeyPatch], None]


def test_the_audit_tells_what_is_stored_whatever_happens() -> None:
    compared_count = crash_count = host_count = 0
    for seed in range(rounds(small=4, full=120)):
        campaign = AuditCampaign(seed)
        campaign.run(event_count=8)
        compared_count += campaign.compared_count
        crash_count += campaign.crash_count
        host_count = max(host_count, campaign.host_count)
    assert compared_count > 3
    assert crash_count > 0
    assert host_count > 1


def believe_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stretches are taken whether or not they follow what is published."""

    def publish(self: AuditShard, stretches: Sequence[Stretch]) -> Change[list[Published]]:
        records = [StoredRecord(*record) for each in stretches for record in each.records]
        nothing = Published(NOTHING_PUBLISHED, NO_EPOCH)
        known = [
            Published(each.to_offset, NO_EPOCH)
            if each.records
            else self._published.get(each.source, nothing)
            for each in stretches
        ]
        return Change(known, records)

    monkeypatch.setattr(AuditShard, "publish", publish)


def count_from_the_start_again(monkeypatch: pytest.MonkeyPatch) -> None:
    believe_everybody(monkeypatch)
    begin = Source.begin

    def begin_anew(
        self: Source, published: Published, bucket_ms: int, oldest_ms: int, now_ms: int
    ) -> None:
        begin(self, published._replace(offset=0), bucket_ms, oldest_ms, now_ms)

    monkeypatch.setattr(Source, "begin", begin_anew)


def begin_with_what_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new leader does not look what was left to count."""
    believe_everybody(monkeypatch)
    begin = Source.begin

    def begin_at_end(
        self: Source, published: Published, bucket_ms: int, oldest_ms: int, now_ms: int
    ) -> None:
        start = Published(self.partition.last_stable_offset, NO_EPOCH)
        begin(self, start, bucket_ms, oldest_ms, now_ms)

    monkeypatch.setattr(Source, "begin", begin_at_end)


def forget_a_stretch(monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be published is taken for published."""
    rows = BatchCounts.rows

    def without_the_last(
        self: BatchCounts, names: Row, facts: Row, client_ids: dict[int, str]
    ) -> list[Row]:
        found = rows(self, names, facts, client_ids)
        return found[:-1] if len(found) > 1 else found

    monkeypatch.setattr(BatchCounts, "rows", without_the_last)


def take_the_bucket_before(monkeypatch: pytest.MonkeyPatch) -> None:
    add = BatchCounts.add

    def add_early(self: BatchCounts, headers: Sequence[BatchHeader], *others: object) -> None:
        early = [each._replace(max_timestamp=each.base_timestamp - 1_000) for each in headers]
        add(self, early, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(BatchCounts, "add", add_early)


@pytest.mark.parametrize(
    "plant",
    [
        count_from_the_start_again,
        begin_with_what_comes,
        forget_a_stretch,
        take_the_bucket_before,
    ],
)
def test_a_planted_bug_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    for seed in range(SEEDS_MAX):
        try:
            AuditCampaign(seed).run(event_count=8)
        except AssertionError as error:
            assert "the audit tells what is stored" in str(error)
            return
    pytest.fail("the bug was not found")
