"""Exactly one broker is elected, and every election has its epoch."""

import asyncio
from collections.abc import Sequence

import pytest

from headwater.cluster.controller.election import elect_controller
from headwater.cluster.store.embedded.session import EmbeddedSession
from headwater.cluster.store.errors import UncertainWriteError
from headwater.cluster.store.metadata_store import Operation, Result
from tests.support.async_tests import run_async
from tests.support.brokers.metadata_stores import open_in_memory


@run_async
async def test_one_of_many_is_elected_and_the_others_learn_who() -> None:
    store = await open_in_memory()
    sessions = [store.connect() for _ in range(6)]
    epochs = []
    alive = dict(enumerate(sessions))
    while alive:
        elections = await asyncio.gather(
            *(elect_controller(session, broker_id, 0) for broker_id, session in alive.items())
        )
        winners = [election for election in elections if election.won]
        assert len(winners) == 1
        (winner,) = winners
        assert {election.controller_id for election in elections} == {winner.controller_id}
        node = await sessions[winner.controller_id].get("/controller_epoch")
        assert (node.data, node.version) == (b"%d" % winner.epoch, winner.epoch_version)
        epochs.append(winner.epoch)
        await alive.pop(winner.controller_id).close()
    assert epochs == [1, 2, 3, 4, 5, 6]


@run_async
async def test_who_is_elected_already_is_found_out_by_standing_again() -> None:
    store = await open_in_memory()
    session = store.connect()
    assert (await elect_controller(session, 3, 0)).won
    again = await elect_controller(session, 3, 0)
    assert not again.won and again.controller_id == 3


class _LateSession(EmbeddedSession):
    """Before it stands for election the first time, another one is elected and gone again."""

    was_late = False

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        if not self.was_late:
            self.was_late = True
            other = self._store.connect()
            assert (await elect_controller(other, 9, 0)).won
            await other.close()
        return await super().multi(operations)


@run_async
async def test_an_election_that_was_missed_still_counts() -> None:
    store = await open_in_memory()
    before = store.connect()
    assert (await elect_controller(before, 1, 0)).epoch == 1
    await before.close()
    late = _LateSession(store, session_id=99)
    election = await elect_controller(late, 2, 0)
    assert (election.controller_id, election.epoch) == (2, 3)
    node = await late.get("/controller_epoch")
    assert (node.data, node.version) == (b"3", election.epoch_version)


@pytest.mark.parametrize("data", [b"", b"{", b"{}", b'{"version":1,"brokerid":-1}'])
@run_async
async def test_a_node_that_names_nobody_leads_to_an_election(data: bytes) -> None:
    store = await open_in_memory()
    sessions = [store.connect() for _ in range(3)]
    assert (await elect_controller(sessions[0], 0, 0)).won
    await sessions[0].set("/controller", data)
    elections = await asyncio.gather(
        *(elect_controller(session, number, 0) for number, session in enumerate(sessions))
    )
    assert sum(election.won for election in elections) == 1
    (winner,) = {election.controller_id for election in elections}
    assert elections[winner].epoch == 2


class _DeafSession(EmbeddedSession):
    """Does the first write, or does not, and cannot tell which."""

    is_done: bool | None = None

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        is_done, self.is_done = self.is_done, None
        if is_done is None:
            return await super().multi(operations)
        if is_done:
            await super().multi(operations)
        raise UncertainWriteError(operations[0].path)


@pytest.mark.parametrize("is_done", [True, False])
@run_async
async def test_an_election_that_was_not_heard_of_is_looked_for(is_done: bool) -> None:
    store = await open_in_memory()
    for epoch in (1, 2):
        session = _DeafSession(store, session_id=90 + epoch)
        session.is_done = is_done
        election = await elect_controller(session, 4, 0)
        node = await session.get("/controller_epoch")
        assert (election.won, election.epoch, election.epoch_version) == (True, epoch, node.version)
        assert (await session.get("/controller")).ephemeral_owner == 90 + epoch
        await session.delete("/controller")
