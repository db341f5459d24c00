"""Exactly one broker is elected, and every election has its epoch."""

import asyncio
from collections.abc import Sequence

from headwater.cluster.controller_election import elect_controller
from headwater.cluster.store.embedded_session import EmbeddedSession
from headwater.cluster.store.metadata_store import Operation, Result
from tests.support.async_tests import run_async
from tests.support.metadata_stores import open_in_memory


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
