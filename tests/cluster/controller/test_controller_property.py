"""Whatever happens to brokers and controllers, in any order, the controllers' promises hold."""

import asyncio
import contextlib
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.base.errors import KafkaError
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
