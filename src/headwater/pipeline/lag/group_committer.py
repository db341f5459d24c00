"""Commits offsets as groups, with one admin client for each cluster that it meets.

It belongs to one thread. A client that failed is thrown away, and the next commit makes a new one:
the cluster may have come back under other addresses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headwater.base.errors import KafkaError
from headwater.client.admin import Admin, CommittedOffset
from headwater.client.settings.admin_settings import ADMIN_SETTINGS
from headwater.client.settings.client_config import parse_settings
from headwater.pipeline.lag.commit_backlog import DueCommit

BOOTSTRAP: Final = "bootstrap.servers"
#: Less patient than other clients: what fails is tried again anyway, and the log shall say so soon.
DEFAULT_SETTINGS: Final = {"default.api.timeout.ms": 15_000, "client.id": "headwater-lag"}


class GroupCommitter:
    """`settings` are those of `Admin`, as keywords."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        given = dict(settings)
        servers = given.pop("bootstrap_servers", "")
        #: For sources that do not say where they read.
        self.bootstrap_servers = servers if isinstance(servers, str) else ",".join(servers)
        # Wrong settings are the caller's mistake, and not to be found by a thread later.
        parse_settings(ADMIN_SETTINGS, {BOOTSTRAP: servers or "any:9092"}, given)
        self._settings = given
        self._admins: dict[str, Admin] = {}

    def commit(self, due: DueCommit) -> str:
        """Commit; returns why some were refused for good, raises what may pass."""
        servers = due.key.bootstrap_servers
        try:
            admin = self._admins.get(servers) or Admin(
                {**DEFAULT_SETTINGS, BOOTSTRAP: servers}, **self._settings
            )
            self._admins[servers] = admin
            outcomes = admin.alter_group_offsets(
                due.key.group,
                {
                    partition: CommittedOffset(offset, metadata=due.note)
                    for partition, offset in due.positions.items()
                },
                raise_errors=False,
            )
        except KafkaError:
            self._discard(servers)
            raise
        # What may pass has been tried again and then raised.
        refusals = [str(error) for error in outcomes.values() if error is not None]
        return refusals[0] if refusals else ""

    def close(self) -> None:
        """Close all clients."""
        for servers in list(self._admins):
            self._discard(servers)

    def _discard(self, servers: str) -> None:
        admin = self._admins.pop(servers, None)
        if admin is not None:
            admin.close()
