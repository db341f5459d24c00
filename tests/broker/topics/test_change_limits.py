"""The limits of a change: the waiting ends and the change does not, and there are not too many."""

import asyncio

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.topics.change_limits import CHANGE_COUNT_MAX, check_change_count, within
from headwater.cluster.controller.change_turns import ChangeTurns


async def _fail() -> None:
    raise KafkaError(ErrorCode.INVALID_PARTITIONS)


async def _succeed() -> str:
    return "result"


def test_what_is_done_in_time_is_returned_or_raised() -> None:
    assert asyncio.run(within(1000, _succeed())) == "result"
    with pytest.raises(KafkaError) as error:
        asyncio.run(within(1000, _fail()))
    assert error.value.code is ErrorCode.INVALID_PARTITIONS


@pytest.mark.parametrize("timeout_ms", [0, -1, 1])
def test_the_change_goes_on_when_the_time_is_over(timeout_ms: int) -> None:
    async def run() -> list[str]:
        turns = ChangeTurns()
        may_end = asyncio.Event()
        finished: list[str] = []

        async def change() -> None:
            await may_end.wait()
            finished.append("done")

        with pytest.raises(KafkaError) as error:
            await within(timeout_ms, turns.run(change))
        assert error.value.code is ErrorCode.REQUEST_TIMED_OUT
        assert finished == []
        may_end.set()
        await turns.finish()
        return finished

    assert asyncio.run(run()) == ["done"]


def test_a_request_may_ask_for_so_many_changes_and_no_more() -> None:
    check_change_count(CHANGE_COUNT_MAX)
    with pytest.raises(KafkaError, match="10000 topics") as error:
        check_change_count(CHANGE_COUNT_MAX + 1)
    assert error.value.code is ErrorCode.POLICY_VIOLATION
