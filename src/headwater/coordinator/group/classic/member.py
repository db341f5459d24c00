"""A member of a classic group: who it is, what it supports, and what it was assigned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from headwater.coordinator.outcome import nothing_follows


class JoiningClient(NamedTuple):
    """Who sends a JoinGroup, and in which version of it."""

    client_id: str
    client_host: str
    api_version: int


class ClassicMember:
    """What the group knows of a member; answers that it waits for are the group's."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "extend_session",
        "group_instance_id",
        "member_id",
        "protocol_type",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
    )

    def __init__(
        self,
        *,
        member_id: str,
        protocol_type: str,
        protocols: Mapping[str, bytes],
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.protocol_type = protocol_type
        #: What it supports, its favourite first: the name of a strategy, and for each the bytes
        #: that only the members understand, for consumers their subscription.
        self.protocols = dict(protocols)
        #: What only the members understand as well: for consumers, partitions.
        self.assignment = assignment
        #: Called when the member was heard of by other ways than the steps of the protocol.
        self.extend_session: Callable[[], None] = nothing_follows

    @property
    def is_static(self) -> bool:
        """Whether it keeps its place while it is restarted."""
        return self.group_instance_id is not None

    @property
    def metadata_bytes(self) -> int:
        """What its subscriptions take."""
        return sum([len(name) + len(metadata) for name, metadata in self.protocols.items()])

    def supports_exactly(self, protocols: Mapping[str, bytes]) -> bool:
        """Whether these are its protocols, in its order and with nothing new to say."""
        return list(self.protocols.items()) == list(protocols.items())

    def __repr__(self) -> str:
        return f"ClassicMember({self.member_id!r})"
