"""What all kinds of groups have in common, for whoever keeps offsets, lists and deletes them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import StrEnum

from headwater.coordinator.stored_record import StoredRecord


class GroupKind(StrEnum):
    """The protocols; the names are Kafka's."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


class Group(ABC):
    """A group of either protocol."""

    kind: GroupKind

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id

    @property
    @abstractmethod
    def state_name(self) -> str:
        """Its state as Kafka's tools show it: Empty, Stable, ..."""

    @property
    @abstractmethod
    def protocol_type(self) -> str:
        """What its members are, "consumer" mostly; empty for a group that has only offsets."""

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Whether it has no members."""

    @abstractmethod
    def check_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation: int,
        *,
        is_transactional: bool,
        api_version: int,
    ) -> None:
        """Raise unless this member may commit; `generation` is the member epoch in KIP-848."""

    @abstractmethod
    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise unless this member, if any is named, may ask for offsets."""

    @abstractmethod
    def check_deletion(self) -> None:
        """Raise NON_EMPTY_GROUP, or what else keeps the group from being deleted."""

    @abstractmethod
    def is_subscribed_to(self, topic: str) -> bool:
        """Whether some member consumes the topic, so that its offsets are in use."""

    @abstractmethod
    def offsets_unused_since_ms(self, topic: str, commit_ms: int) -> int | None:
        """From when on the retention of an offset counts; None while it is in use."""

    @abstractmethod
    def tombstones(self) -> list[StoredRecord]:
        """The records that delete the group itself; its offsets are not among them."""

    @abstractmethod
    def stored_state(self) -> object:
        """What records alone decide of it: equal to that of a group replayed from the topic."""
