"""Tasks of requests begin some at a time, in order, and all are waited for."""

import asyncio
from functools import partial

from headwater.broker.requests.tasks import BEGUN_PER_ROUND, RequestTasks
from tests.support.fakes.peers.transports import turns


def test_tasks_begin_in_their_order_and_some_in_a_round() -> None:
    async def run() -> None:
        tasks = RequestTasks(asyncio.get_running_loop())
        begun: list[int] = []

        async def work(number: int) -> None:
            begun.append(number)

        def begin(number: int) -> None:
            tasks.spawn(work(number))

        def ask(number: int) -> None:
            if tasks.may_begin():
                begin(number)
            else:
                tasks.wait(partial(begin, number))

        count = 5 * BEGUN_PER_ROUND
        for number in range(count):
            ask(number)
        seen = 0
        while seen < count:
            await turns(1)
            assert len(begun) - seen <= BEGUN_PER_ROUND
            seen = len(begun)
        assert begun == list(range(count))
        await turns(2)
        assert [tasks.may_begin() for _ in range(BEGUN_PER_ROUND + 1)].count(True) == (
            BEGUN_PER_ROUND
        )

    asyncio.run(run())


def test_the_end_waits_for_those_that_have_not_begun() -> None:
    async def run() -> None:
        tasks = RequestTasks(asyncio.get_running_loop())
        done: list[int] = []

        async def work(number: int) -> None:
            await asyncio.sleep(0)
            done.append(number)

        def begin(number: int) -> None:
            tasks.spawn(work(number))

        for number in range(3 * BEGUN_PER_ROUND):
            tasks.wait(partial(begin, number))
        await tasks.finish()
        assert done == list(range(3 * BEGUN_PER_ROUND))

    asyncio.run(run())
