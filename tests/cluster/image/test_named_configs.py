"""Settings of what may have any name: where each store keeps them, and what is found again."""

from pathlib import Path

import pytest

from headwater.cluster.image.image import ConfigResource, ResourceKind
from headwater.cluster.image.loader import load_image
from headwater.cluster.node_locations import name_of_node, node_name
from tests.support.async_tests import run_async
from tests.support.brokers.controllers import take_seat
from tests.support.brokers.metadata_stores import WORLDS, OpenWorld

NAMES = ["billing", "a b/c", "<default>", ".", "..", "...", "%2E", "Größe", "\0\n", "x" * 300]


@pytest.mark.parametrize("name", NAMES)
def test_a_nodes_name_stands_for_one_name(name: str) -> None:
    assert name_of_node(node_name(name)) == name
    assert not set(node_name(name)) & set("/\0\n ") and node_name(name) not in (".", "..")


@pytest.mark.parametrize("node", ["", "a b", "%2f", "%FF", "%2E%2E%2E", "a%"])
def test_other_nodes_stand_for_nothing(node: str) -> None:
    with pytest.raises(ValueError, match=r"name|codec"):
        name_of_node(node)


@pytest.mark.parametrize("open_world", WORLDS.values(), ids=WORLDS.keys())
@run_async
async def test_every_store_keeps_them(open_world: OpenWorld, tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        session = await world.connect()
        controller = (await take_seat(session)).controller
        for name in NAMES:
            resource = ConfigResource(ResourceKind.GROUP, name)
            await controller.set_configs(resource, {"setting": name})
        # Nobody but a broker writes here, and who did so all the same is ignored.
        await session.create("/config/groups/%2f", b'{"version":1,"config":{"setting":"x"}}')
        await session.create("/config/groups/odd", b"{")
        image = await load_image(await world.connect())
        assert image.configured(ResourceKind.GROUP) == sorted([*NAMES, "odd"])
        assert [image.group_configs(name) for name in NAMES] == [{"setting": n} for n in NAMES]
        assert image.group_configs("odd") == {}
