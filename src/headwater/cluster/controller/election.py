"""The election of the controller: the broker that creates `/controller` is it.

The node is ephemeral, so it goes when the controller does, and then another one can be elected.
`/controller_epoch` counts the elections. Both are written in one transaction: there is no moment in
which there is a new controller with the old epoch. A `/controller` that names nobody, or that
cannot be read, is as good as none: it is removed.
"""

from __future__ import annotations

import contextlib
import logging
from typing import NamedTuple

from headwater.cluster.image.image import NO_CONTROLLER
from headwater.cluster.node_documents import (
    CorruptNodeError,
    decode_controller,
    decode_integer,
    encode_controller,
)
from headwater.cluster.node_locations import CONTROLLER, CONTROLLER_EPOCH
from headwater.cluster.store.errors import (
    BadVersionError,
    NodeExistsError,
    NoNodeError,
    UncertainWriteError,
)
from headwater.cluster.store.metadata_store import Create, MetadataStore, Node, Operation, Set

_logger = logging.getLogger(__name__)

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
        if present is None:
            election = await _stand(store, broker_id, now_ms)
            if election is not None:
                return election
            continue
        controller_id = controller_named(present)
        if controller_id != NO_CONTROLLER:
            return Election(controller_id)
        with contextlib.suppress(NoNodeError, BadVersionError, UncertainWriteError):
            await store.delete(CONTROLLER, present.version)


def controller_named(node: Node) -> int:
    """Whom `/controller` names; NO_CONTROLLER if that is nobody, or cannot be read."""
    try:
        return decode_controller(CONTROLLER, node.data)
    except CorruptNodeError as error:
        _logger.error("%s", error)
        return NO_CONTROLLER


async def _stand(store: MetadataStore, broker_id: int, now_ms: int) -> Election | None:
    """Try to become the controller; None if another one was faster."""
    claim = Create(CONTROLLER, encode_controller(broker_id, now_ms), ephemeral=True)
    before = await store.exists(CONTROLLER_EPOCH)
    count: Operation
    if before is None:
        count = Create(CONTROLLER_EPOCH, b"%d" % FIRST_EPOCH)
        election = Election(broker_id, FIRST_EPOCH, 0)
    else:
        epoch = decode_integer(CONTROLLER_EPOCH, before.data) + 1
        count = Set(CONTROLLER_EPOCH, b"%d" % epoch, before.version)
        election = Election(broker_id, epoch, before.version + 1)
    try:
        await store.multi([claim, count])
    except (NodeExistsError, BadVersionError):
        return None
    except UncertainWriteError:
        # If the node is there and belongs to this session, then it was done, and while it is
        # there nobody else counts an epoch.
        present = await store.exists(CONTROLLER)
        if present is None or present.ephemeral_owner != store.session_id:
            return None
    return election
