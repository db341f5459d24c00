"""The groups of one shard, by id."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.group.group import Group

G = TypeVar("G", bound=Group)


class Groups:
    """A group is here from its first member or its first offset on, until it is deleted."""

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}

    def __iter__(self) -> Iterator[Group]:
        """All of them, as they are now: they may be removed on the way."""
        return iter(list(self._groups.values()))

    def __len__(self) -> int:
        return len(self._groups)

    def find(self, group_id: str) -> Group | None:
        return self._groups.get(group_id)

    def find_of(self, group_class: type[G], group_id: str) -> G | None:
        """The group if there is one of that kind."""
        group = self._groups.get(group_id)
        return group if isinstance(group, group_class) else None

    def get(self, group_id: str) -> Group:
        """The group; raises GROUP_ID_NOT_FOUND."""
        group = self._groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"There is no group {group_id}.")
        return group

    def put(self, group: Group) -> None:
        """Add a group, or replace one that has changed its protocol."""
        self._groups[group.group_id] = group

    def remove(self, group_id: str) -> None:
        self._groups.pop(group_id, None)
