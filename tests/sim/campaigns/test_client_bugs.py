"""What the campaign with our own client is there to find is found if somebody plants it."""

from collections.abc import Callable
from typing import Any

import pytest

from headwater.client.consumer.async_consumer import AsyncConsumer
from headwater.client.consumer.membership.membership import GroupIdentity
from headwater.client.fetch.fetched_partition import FetchedPartition
from headwater.sim.campaigns.client import ClientCampaign

Plant = Callable[[pytest.MonkeyPatch], None]

#: A bug that this many seeds do not find would stay hidden. One of them shows in one of fifteen.
SEEDS_MAX = 150


def number_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ClientCampaign, "producer_settings", {"enable_idempotence": False})


def show_what_was_aborted(monkeypatch: pytest.MonkeyPatch) -> None:
    make = FetchedPartition.__init__

    def make_without(self: FetchedPartition, *arguments: Any, **named: Any) -> None:
        make(self, *arguments, **{**named, "aborted": ()})

    monkeypatch.setattr(FetchedPartition, "__init__", make_without)


def commit_as_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the coordinator cannot tell a member that was shut out from one that is in."""
    identity = AsyncConsumer.group_identity
    monkeypatch.setattr(
        AsyncConsumer, "group_identity", lambda self: GroupIdentity(identity(self).group_id)
    )


@pytest.mark.parametrize(
    ("plant", "broken", "first_seed"),
    [
        (number_nothing, "stored once|order of a producer|copied once", 4),
        (show_what_was_aborted, "aborted transaction is seen", 5),
        (commit_as_nobody, "copied once|never go back|everybody gets done", 49),
    ],
)
def test_a_planted_bug_is_found(
    plant: Plant, broken: str, first_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first seed is one that used to find it, to save time."""
    plant(monkeypatch)
    monkeypatch.setattr("headwater.sim.campaigns.broker.HEALED_TIME_MAX_S", 60.0)
    with pytest.raises(AssertionError, match=broken) as found:
        for seed in range(first_seed, first_seed + SEEDS_MAX):
            ClientCampaign(seed).run()
    assert str(found.value).startswith("seed ")
