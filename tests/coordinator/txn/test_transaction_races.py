"""Whatever clients, zombies and coordinators do, transactions end once, and as somebody wanted."""

from __future__ import annotations

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from headwater.coordinator.outcome import Outcome, ProducerIdentity, Reply
from headwater.coordinator.txn.producer_initialization import ProducerInitialization
from headwater.coordinator.txn.transaction_end import TransactionEnd
from headwater.coordinator.txn.transaction_environment import TransactionEnvironment
from headwater.coordinator.txn.transaction_metadata import (
    EPOCH_PER_TRANSACTION,
    TransactionMetadata,
)
from headwater.coordinator.txn.transaction_shard import TransactionShard
from tests.support.tiers import rounds
from tests.support.worlds.transaction_races import Races


class MixedRaces(Races):
    """Clients of the first version too: their late requests may hit the next transaction."""

    versions = (EPOCH_PER_TRANSACTION, 0)


_SETTINGS = settings(
    max_examples=rounds(60, 1000), stateful_step_count=rounds(60, 100), deadline=None
)

TestRaces = Races.TestCase
TestRaces.settings = _SETTINGS
TestMixedRaces = MixedRaces.TestCase
TestMixedRaces.settings = _SETTINGS


# -- bugs that must be found ---------------------------------------------------------------------


class SameEpochEnd(TransactionEnd):
    """A transaction does not get an epoch of its own."""

    def end(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        is_commit: bool,
        client_version: int,
        new_producer_id: int | None,
        now_ms: int,
        reply: Reply[ProducerIdentity],
    ) -> Outcome:
        return super().end(transactional_id, producer, is_commit, 0, new_producer_id, now_ms, reply)


class ShardWithoutEpochs(TransactionShard):
    def __init__(self, environment: TransactionEnvironment) -> None:
        super().__init__(environment)
        self.ends = SameEpochEnd(self.transactions, self._handout)


class TrustfulInitialization(ProducerInitialization):
    """Whoever recovers is believed to be the present instance."""

    def _check_expected(
        self, metadata: TransactionMetadata, expected: ProducerIdentity | None
    ) -> None:
        pass


class ShardWithTrust(TransactionShard):
    def __init__(self, environment: TransactionEnvironment) -> None:
        super().__init__(environment)
        self.producers = TrustfulInitialization(environment, self.transactions, self._handout)


class RacesWithoutEpochs(Races):
    shard_class = ShardWithoutEpochs


class RacesWithTrust(Races):
    shard_class = ShardWithTrust


#: The same each time, and without a search for the smallest example.
_UNTIL_FOUND = settings(
    _SETTINGS,
    max_examples=1000,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
)


@pytest.mark.parametrize(
    ("races", "complaint"),
    [
        (RacesWithoutEpochs, "two transactions of"),
        (RacesWithTrust, "a fenced producer succeeded"),
    ],
)
def test_planted_bugs_are_found(races: type[Races], complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        run_state_machine_as_test(races, settings=_UNTIL_FOUND)
