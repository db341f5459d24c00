"""Producer ids: none is handed out twice, and a block is asked for once."""

import asyncio

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.transactions.producer_ids import ProducerIds


class Blocks:
    """A controller that gives blocks of a size, each one after a turn of the loop."""

    def __init__(self, size: int, failures: int = 0) -> None:
        self.size = size
        self.failures = failures
        self.count = 0

    async def allocate(self) -> range:
        await asyncio.sleep(0)
        if self.failures > 0:
            self.failures -= 1
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        self.count += 1
        return range((self.count - 1) * self.size, self.count * self.size)


def test_ids_follow_one_another_over_blocks() -> None:
    blocks = Blocks(3)
    ids = ProducerIds(blocks.allocate)

    async def take() -> list[int]:
        return [await ids.next_id() for _ in range(7)]

    assert asyncio.run(take()) == list(range(7))
    assert blocks.count == 3


def test_those_who_ask_at_once_share_a_block_and_get_different_ids() -> None:
    blocks = Blocks(4)
    ids = ProducerIds(blocks.allocate)

    async def take() -> list[int]:
        return await asyncio.gather(*(ids.next_id() for _ in range(10)))

    assert sorted(asyncio.run(take())) == list(range(10))
    assert blocks.count == 3


def test_a_failure_reaches_all_who_wait_and_the_next_one_tries_again() -> None:
    blocks = Blocks(10, failures=1)
    ids = ProducerIds(blocks.allocate)

    async def take() -> list[int | BaseException]:
        return await asyncio.gather(*(ids.next_id() for _ in range(3)), return_exceptions=True)

    async def run() -> tuple[list[int | BaseException], int]:
        return await take(), await ids.next_id()

    refused, granted = asyncio.run(run())
    assert [getattr(each, "code", None) for each in refused] == [ErrorCode.NOT_CONTROLLER] * 3
    assert granted == 0


def test_a_client_that_hangs_up_does_not_take_the_block_from_the_others() -> None:
    blocks = Blocks(10)
    ids = ProducerIds(blocks.allocate)

    async def run() -> int:
        first = asyncio.ensure_future(ids.next_id())
        second = asyncio.ensure_future(ids.next_id())
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        return await second

    assert asyncio.run(run()) == 0
    assert blocks.count == 1


def test_the_next_block_is_there_before_the_present_one_is_used_up() -> None:
    blocks = Blocks(20)
    ids = ProducerIds(blocks.allocate)

    async def run() -> None:
        assert [await ids.next_id() for _ in range(17)] == list(range(17))
        await asyncio.sleep(0.001)
        assert blocks.count == 1
        assert await ids.next_id() == 17
        await asyncio.sleep(0.001)
        assert blocks.count == 2
        # For a while there may be no controller now.
        blocks.failures = 1
        assert [await ids.next_id() for _ in range(10)] == list(range(18, 28))
        assert blocks.count == 2

    asyncio.run(run())


def test_a_block_that_cannot_be_had_in_advance_is_asked_for_again() -> None:
    blocks = Blocks(20)
    ids = ProducerIds(blocks.allocate)

    async def run() -> list[int]:
        taken = [await ids.next_id() for _ in range(17)]
        blocks.failures = 1
        taken.append(await ids.next_id())
        await asyncio.sleep(0.001)
        assert (blocks.failures, blocks.count) == (0, 1)
        return taken + [await ids.next_id() for _ in range(5)]

    assert asyncio.run(run()) == list(range(23))
