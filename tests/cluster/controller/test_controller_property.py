"""Whatever happens to brokers and controllers, in any order, the controllers' promises hold."""

import asyncio
import contextlib
import random
from collections.abc import Collection

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.base.errors import KafkaError
from headwater.cluster.image.image import PartitionImage
from headwater.cluster.partitions.elections import led_by
from headwater.cluster.reassignment import changes
from headwater.cluster.reassignment.steps import next_state
from tests.support.models.controller_model import ControllerModel
from tests.support.tiers import rounds

KINDS = [
    "fail",
    "come back",
    "come back unclean",
    "restart",
    "replace controller",
    "doubt",
    "create",
    "create",
    "grow",
    "delete",
    "alter",
    "alter",
    "alter",
    "acknowledge",
    "acknowledge",
    "shut down",
    "elect",
    "reassign",
    "reassign",
    "settle",
    "settle",
]


async def _happen(model: ControllerModel, kind: str, chance: random.Random) -> None:
    match kind:
        case "fail":
            await model.fail(chance)
        case "come back":
            await model.come_back(chance, is_unclean=False)
        case "come back unclean":
            await model.come_back(chance, is_unclean=True)
        case "restart":
            await model.restart(chance)
        case "replace controller":
            await model.replace_controller(chance)
        case "doubt":
            await model.doubt(chance)
        case "create":
            await model.create(chance)
        case "grow":
            await model.grow(chance)
        case "delete":
            await model.delete(chance)
        case "alter":
            await model.alter(chance)
        case "reassign":
            await model.reassign(chance)
        case "acknowledge":
            await model.acknowledge(chance)
        case "shut down":
            await model.shut_down(chance)
        case "elect":
            await model.elect(chance)
        case "settle":
            if model.crowd.brokers:
                await model.check_store()


async def _play(steps: list[tuple[str, int]]) -> None:
    model = await ControllerModel.begin()
    for kind, seed in steps:
        # A controller whose broker is gone refuses, and that is all it may do.
        with contextlib.suppress(KafkaError):
            await _happen(model, kind, random.Random(seed))
        await model.see_to_controller(random.Random(seed))
        model.check()
    chance = random.Random(0)
    await model.come_back(chance, is_unclean=False)
    await model.check_store()
    await model.crowd.close()


@settings(max_examples=rounds(small=60, full=2_000), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 999)), max_size=40))
def test_the_promises_hold(steps: list[tuple[str, int]]) -> None:
    asyncio.run(_play(steps))


def test_the_promises_hold_in_long_stories() -> None:
    for seed in range(rounds(small=10, full=300)):
        chance = random.Random(seed)
        steps = [(chance.choice(KINDS), chance.randrange(1_000)) for _ in range(150)]
        try:
            asyncio.run(_play(steps))
        except BaseException as error:
            raise AssertionError(f"seed {seed}") from error


def test_a_move_that_drops_the_last_replica_in_sync_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who cancels gets the old replicas back at once, whatever they have."""

    def back_at_once(
        partition: PartitionImage, live: Collection[int], electable: Collection[int], min_isr: int
    ) -> PartitionImage | None:
        leaders = [each for each in partition.origin if each in live]
        if leaders and partition.adding and set(partition.adding) == set(partition.removing):
            ended = led_by(partition, leaders[0], partition.origin)
            return ended._replace(replicas=partition.origin, adding=(), removing=())
        return next_state(partition, live, electable, min_isr)

    monkeypatch.setattr(changes, "next_state", back_at_once)
    with pytest.raises(AssertionError):
        for seed in range(50):
            chance = random.Random(seed)
            asyncio.run(
                _play([(chance.choice(KINDS), chance.randrange(1_000)) for _ in range(150)])
            )
