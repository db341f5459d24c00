"""A metadata store whose answers get lost, and that sees to it who writes."""

from __future__ import annotations

import json
from collections.abc import Sequence

from headwater.cluster.store.embedded.journal import Changes
from headwater.cluster.store.embedded.store import EmbeddedStore
from headwater.cluster.store.errors import UncertainWriteError
from headwater.cluster.store.metadata_store import MetadataStore, Operation, Result
from tests.support.brokers.metadata_stores import DictJournal, EmbeddedWorld


class FencedJournal(DictJournal):
    """Sees to it that every state is written by the controller of that moment."""

    async def commit(self, changes: Changes, transaction_id: int) -> None:
        before = self.rows.get("/controller_epoch")
        await super().commit(changes, transaction_id)
        now = self.rows.get("/controller_epoch")
        epochs = {int(row.data) for row in (before, now) if row is not None}
        for path, row in changes.items():
            if row is not None and path.endswith("/state"):
                epoch = json.loads(row.data)["controller_epoch"]
                assert epoch in epochs, f"{path} was written by controller {epoch} of {epochs}"


class DoubtfulWorld(EmbeddedWorld):
    """Sessions that do not hear what became of a write, as often as the model wants."""

    def __init__(self, store: EmbeddedStore) -> None:
        super().__init__(store)
        #: Whether the next writes are done; nobody hears either way.
        self.fates: list[bool] = []

    async def connect(self) -> MetadataStore:
        session = self.store.connect()
        multi = session.multi

        async def doubtful(operations: Sequence[Operation]) -> list[Result]:
            if not self.fates:
                return await multi(operations)
            if self.fates.pop():
                await multi(operations)
            raise UncertainWriteError(operations[0].path)

        vars(session)["multi"] = doubtful
        return session
