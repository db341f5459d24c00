"""Members of a cluster agree on one controller, whatever happens to sessions and nodes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from headwater.base.background_tasks import BackgroundTasks
from headwater.base.clocks import SystemClock
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.randomness import SeededRandom
from headwater.cluster.identity import establish_cluster_id
from headwater.cluster.image.image import BrokerInfo
from headwater.cluster.member import ClusterMember
from headwater.cluster.node_documents import decode_controller
from headwater.cluster.node_locations import CONTROLLER, CONTROLLER_EPOCH
from headwater.cluster.store.embedded.journal import NullJournal
from headwater.cluster.store.embedded.session import EmbeddedSession
from headwater.cluster.store.embedded.store import EmbeddedConnector, EmbeddedStore
from headwater.cluster.topics.new_topic import ControllerOptions, NewTopic
from headwater.wire.cluster_messages.update_image import UpdateImageRequest, UpdateImageResponse
from tests.support.async_tests import run_async
from tests.support.brokers.controllers import broker_info
from tests.support.waiting import TIMEOUT_S


class _Connector(EmbeddedConnector):
    def __init__(self, store: EmbeddedStore) -> None:
        super().__init__(store, is_owner=False)
        self.session: EmbeddedSession | None = None

    async def connect(self) -> EmbeddedSession:
        self.session = await super().connect()
        return self.session


class Members:
    """Brokers without partitions, which hear of each other through calls."""

    def __init__(self, store: EmbeddedStore) -> None:
        self.store = store
        self.members: dict[int, ClusterMember] = {}
        self.connectors: dict[int, _Connector] = {}
        self.sent: list[UpdateImageRequest] = []

    async def _send(self, broker: BrokerInfo, request: UpdateImageRequest) -> UpdateImageResponse:
        self.sent.append(request)
        member = self.members.get(broker.broker_id)
        if member is None:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "gone")
        return await member.receive(request)

    async def start(self, broker_id: int) -> ClusterMember:
        connector = self.connectors[broker_id] = _Connector(self.store)
        session = await connector.connect()
        random = SeededRandom(broker_id)
        await establish_cluster_id(session, None, random.uuid)
        member = self.members[broker_id] = ClusterMember(
            connector,
            broker_info(broker_id),
            ControllerOptions(validate_topic_configs=lambda configs, present: None),
            SystemClock(),
            random,
            self._send,
            BackgroundTasks(),
        )
        await member.start(session, is_unclean=False)
        return member

    async def expire(self, broker_id: int) -> None:
        session = self.connectors[broker_id].session
        assert session is not None
        await self.store.expire(session.session_id)

    async def stop(self, broker_id: int) -> None:
        await self.members.pop(broker_id).close()
        await self.connectors.pop(broker_id).close()

    def controllers(self) -> list[int]:
        return [each for each, member in self.members.items() if member.is_controller]

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            while not condition():
                await asyncio.sleep(0.001)

    async def until_agreed(self) -> int:
        """Wait until all know the same single controller and all of the brokers."""

        def agree() -> bool:
            ruling = self.controllers()
            return len(ruling) == 1 and all(
                member.controller_id == member.image.controller_id == ruling[0]
                and set(member.image.brokers) == set(self.members)
                and {each.broker_epoch for each in member.image.brokers.values()}
                == {each.broker.broker_epoch for each in self.members.values()}
                for member in self.members.values()
            )

        await self.until(agree)
        return self.controllers()[0]


@asynccontextmanager
async def three_members() -> AsyncIterator[Members]:
    store = await EmbeddedStore.open(NullJournal(), SystemClock())
    members = Members(store)
    for broker_id in (1, 2, 3):
        await members.start(broker_id)
    yield members
    for broker_id in list(members.members):
        await members.stop(broker_id)
    await store.close()


@run_async
async def test_the_first_is_the_controller_and_all_know_it() -> None:
    async with three_members() as members:
        assert await members.until_agreed() == 1
        images = {each.image.version for each in members.members.values()}
        assert len(images) == 1
        with pytest.raises(KafkaError) as caught:
            _ = members.members[2].controller
        assert caught.value.code is ErrorCode.NOT_CONTROLLER
        assert str(caught.value) == "The controller is broker 1, not this one."


@run_async
async def test_what_the_controller_changes_is_known_everywhere_when_it_is_done() -> None:
    async with three_members() as members:
        await members.until_agreed()
        await members.members[1].controller.create_topics([NewTopic("orders", 4, 3)])
        for member in members.members.values():
            assert len(member.image.topics["orders"].partitions) == 4


@run_async
async def test_another_one_takes_over_when_the_controller_stops() -> None:
    async with three_members() as members:
        await members.until_agreed()
        await members.members[1].controller.create_topics([NewTopic("orders", 4, 3)])
        await members.stop(1)
        assert await members.until_agreed() in (2, 3)
        epochs = {each.image.controller_epoch for each in members.members.values()}
        assert epochs == {2}
        assert all("orders" in each.image.topics for each in members.members.values())


@run_async
async def test_a_member_whose_session_ended_is_back_in_another_life() -> None:
    async with three_members() as members:
        await members.until_agreed()
        before = members.members[2].broker.broker_epoch
        await members.expire(2)
        await members.until(lambda: members.members[2].broker.broker_epoch > before)
        assert await members.until_agreed() == 1


@run_async
async def test_a_controller_whose_session_ended_is_it_no_more() -> None:
    async with three_members() as members:
        await members.until_agreed()
        seat = members.members[1].controller
        await members.expire(1)
        await members.until(lambda: members.members[1].image.controller_epoch == 2)
        await members.until_agreed()
        with pytest.raises(KafkaError) as caught:
            await seat.create_topics([NewTopic("orders", 1, 1)])
        assert caught.value.code is ErrorCode.NOT_CONTROLLER


@pytest.mark.parametrize("data", [b"", b"no document", b'{"version":1,"brokerid":-1}', None])
@run_async
async def test_a_missing_or_corrupt_controller_node_leads_to_an_election(
    data: bytes | None,
) -> None:
    async with three_members() as members:
        await members.until_agreed()
        session = members.store.connect()
        if data is None:
            await session.delete(CONTROLLER)
        else:
            await session.set(CONTROLLER, data)
        await members.until(
            lambda: all(each.image.controller_epoch >= 2 for each in members.members.values())
        )
        ruling = await members.until_agreed()
        node = await session.get(CONTROLLER)
        assert decode_controller(CONTROLLER, node.data) == ruling
        assert len(members.controllers()) == 1


@run_async
async def test_a_smaller_controller_epoch_is_refused_and_a_larger_one_believed() -> None:
    async with three_members() as members:
        await members.until_agreed()
        member = members.members[2]
        old = next(each for each in reversed(members.sent) if each.is_snapshot)
        await members.expire(1)
        await members.until(lambda: member.image.controller_epoch == 2)
        answer = await member.receive(old)
        assert answer.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
        assert member.image.controller_epoch == 2
        old.controller_epoch = 9
        old.to_version = 77
        answer = await member.receive(old)
        assert (answer.error_code, answer.version) == (0, 77)
        assert (member.image.controller_epoch, member.image.version) == (9, 77)


@run_async
async def test_what_was_decided_for_an_earlier_life_is_refused() -> None:
    async with three_members() as members:
        await members.until_agreed()
        member = members.members[2]
        before = member.image
        old = next(each for each in reversed(members.sent) if each.is_snapshot)
        assert [each.broker_id for each in old.brokers] == [1, 2, 3]
        old.to_version = before.version + 1
        old.controller_epoch = 5
        old.brokers[1].broker_epoch -= 1
        answer = await member.receive(old)
        assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH
        del old.brokers[1]
        answer = await member.receive(old)
        assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH
        # Nothing of it was believed, not even that there is such a controller.
        assert member.image is before
        await members.members[1].controller.create_topics([NewTopic("orders", 1, 3)])
        assert "orders" in member.image.topics


@run_async
async def test_every_controller_write_needs_its_epoch() -> None:
    async with three_members() as members:
        await members.until_agreed()
        session = members.store.connect()
        await session.set(CONTROLLER_EPOCH, b"7")
        outcome = await members.members[1].controller.create_topics([NewTopic("orders", 1, 1)])
        error = outcome["orders"]
        assert isinstance(error, KafkaError) and error.code is ErrorCode.NOT_CONTROLLER
        # It was deposed by that, and whoever is elected counts on from there.
        await members.until(
            lambda: all(each.image.controller_epoch == 8 for each in members.members.values())
        )
        await members.until_agreed()


@run_async
async def test_an_id_that_is_taken_is_refused() -> None:
    async with three_members() as members:
        taken = members.members.copy()
        with pytest.raises(KafkaError) as caught:
            await members.start(3)
        assert caught.value.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
        await members.members[3].close()
        members.members = taken
