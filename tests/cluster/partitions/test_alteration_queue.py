"""AlterPartition requests that wait for their turn together."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.controller.change_turns import ChangeTurns
from headwater.cluster.partitions.alteration_queue import AlterationQueue
from headwater.wire.messages.alter_partition import AlterPartitionRequest
from tests.support.values.cluster_images import image_of


class _LostPen:
    """Fails to write when it is told to."""

    def __init__(self) -> None:
        self.may_fail = asyncio.Event()

    async def carry_out(self, _states: object) -> Exception:
        await self.may_fail.wait()
        return KafkaError(ErrorCode.NOT_CONTROLLER, "another one took over")


def test_who_gives_up_waiting_leaves_no_error_that_nobody_hears() -> None:
    async def run() -> None:
        unheard: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, told: unheard.append(told))
        pen, turns = _LostPen(), ChangeTurns()
        queue = AlterationQueue(
            turns,
            cast(Any, SimpleNamespace(image=image_of([]))),
            cast(Any, SimpleNamespace(shutting_down=frozenset())),
            cast(Any, pen),
        )
        first = asyncio.ensure_future(queue.alter(AlterPartitionRequest()))
        second = asyncio.ensure_future(queue.alter(AlterPartitionRequest()))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        pen.may_fail.set()
        with pytest.raises(KafkaError, match="another one"):
            await second
        await turns.finish()
        assert first.cancelled()
        del first, queue
        await asyncio.sleep(0)
        assert unheard == []

    asyncio.run(run())
