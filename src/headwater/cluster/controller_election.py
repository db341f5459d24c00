"""The election of the controller: the broker that creates `/controller` is it.

The node is ephemeral, so it goes when the controller does, and then another one can be elected.
`/controller_epoch` counts the elections. Both are written in one transaction: there is no moment in
which there is a new controller with the old epoch.
"""

from __future__ import annotations

from typing import NamedTuple

from headwater.cluster.node_documents import decode_controller, decode_integer, encode_controller
from headwater.cluster.node_locations import CONTROLLER, CONTROLLER_EPOCH
from headwater.cluster.store.errors import BadVersionError, NodeExistsError
from headwater.cluster.store.metadata_store import Create, MetadataStore, Set

FIRST_EPOCH = 1


class Election(NamedTuple):
    """Who is the controller; the rest is known to the winner alone."""

    controller_id: int
    epoch: int = -1
    epoch_version: int = -1

    @property
    def won(self) -> bool:
        return self.epoch >= FIRST_EPOCH


async def elect_controller(store: MetadataStore, broker_id: int, now_ms: int) -> Election:
    """Become the controller, or learn who is."""
    while True:
        present = await store.exists(CONTROLLER)
        if present is not None:
            return Election(decode_controller(CONTROLLER, present.data))
        election = await _stand(store, broker_id, now_ms)
        if election is not None:
            return election


async def _stand(store: MetadataStore, broker_id: int, now_ms: int) -> Election | None:
    """Try to become the controller; None if another one was faster."""
    claim = Create(CONTROLLER, encode_controller(broker_id, now_ms), ephemeral=True)
    before = await store.exists(CONTROLLER_EPOCH)
    try:
        if before is None:
            await store.multi([claim, Create(CONTROLLER_EPOCH, b"%d" % FIRST_EPOCH)])
            return Election(broker_id, FIRST_EPOCH, 0)
        epoch = decode_integer(CONTROLLER_EPOCH, before.data) + 1
        await store.multi([claim, Set(CONTROLLER_EPOCH, b"%d" % epoch, before.version)])
        return Election(broker_id, epoch, before.version + 1)
    except (NodeExistsError, BadVersionError):
        return None
