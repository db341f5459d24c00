"""Groups as `headwater groups describe` shows them: offsets and lag, members, or states.

Lag is what a group has still to read in a partition: the high watermark less the committed offset,
or for readers of committed records only, the last stable offset less the committed offset. Which of
them the ends are is for the caller to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from headwater.base.ids import TopicPartition
from headwater.cli.output.colour import Tone
from headwater.cli.output.plain_table import Column, Row
from headwater.client.admin import CommittedOffset, GroupDescription, GroupMember


def state_tone(state: object) -> Tone | None:
    """A group at rest is as it should be, with members or without; others are under way."""
    if state in (None, "Empty"):
        return None
    return {"Stable": Tone.GOOD, "Dead": Tone.BAD}.get(str(state), Tone.WARNING)


def _lag_tone(lag: object) -> Tone | None:
    return Tone.WARNING if isinstance(lag, int) and lag > 0 else None


_GROUP: Final = Column("GROUP", "group", 15)
_LEADER_EPOCH: Final = Column("LEADER-EPOCH", "leader_epoch", 15)
_OFFSETS: Final = (
    _GROUP,
    Column("TOPIC", "topic", 15),
    Column("PARTITION", "partition", 10),
    _LEADER_EPOCH,
    Column("CURRENT-OFFSET", "current_offset", 15),
    Column("LOG-END-OFFSET", "log_end_offset", 15),
    Column("LAG", "lag", 15, tone=_lag_tone),
    Column("CONSUMER-ID", "consumer_id", 15),
    Column("HOST", "host", 15),
    Column("CLIENT-ID", "client_id"),
)
_INSTANCE: Final = Column("GROUP-INSTANCE-ID", "group_instance_id", 17)
_UPGRADED: Final = Column("UPGRADED", "upgraded")
_MEMBERS: Final = (
    _GROUP,
    Column("CONSUMER-ID", "consumer_id", 15),
    _INSTANCE,
    Column("HOST", "host", 15),
    Column("CLIENT-ID", "client_id", 15),
    Column("#PARTITIONS", "partition_count", 15),
)
_MEMBERS_VERBOSE: Final = (
    Column("CURRENT-EPOCH", "current_epoch", 15),
    Column("CURRENT-ASSIGNMENT", "current_assignment", 20),
    Column("TARGET-EPOCH", "target_epoch", 15),
    Column("TARGET-ASSIGNMENT", "target_assignment", 20),
    _UPGRADED,
)
_STATES: Final = (
    _GROUP,
    Column("COORDINATOR (ID)", "coordinator", 25),
    Column("ASSIGNMENT-STRATEGY", "assignor", 20),
    Column("STATE", "state", 20, tone=state_tone),
)
_STATES_VERBOSE: Final = (
    Column("GROUP-EPOCH", "group_epoch", 15),
    Column("TARGET-ASSIGNMENT-EPOCH", "assignment_epoch", 25),
)
_MEMBER_COUNT: Final = Column("#MEMBERS", "member_count")


def offset_columns(*, verbose: bool) -> list[Column]:
    return [column for column in _OFFSETS if verbose or column is not _LEADER_EPOCH]


def offset_rows(
    group: GroupDescription,
    committed: Mapping[TopicPartition, CommittedOffset],
    ends: Mapping[TopicPartition, int],
) -> list[Row]:
    """A row for each partition that is assigned, the busiest members first, then for the others."""
    rows: list[Row] = []
    assigned: set[TopicPartition] = set()
    for member in sorted(group.members, key=lambda member: -len(member.assignment)):
        assigned.update(member.assignment)
        rows += (_offset_row(group, key, committed, ends, member) for key in member.assignment)
    rows += (
        _offset_row(group, key, committed, ends) for key in sorted(committed) if key not in assigned
    )
    return rows


def _offset_row(
    group: GroupDescription,
    key: TopicPartition,
    committed: Mapping[TopicPartition, CommittedOffset],
    ends: Mapping[TopicPartition, int],
    member: GroupMember | None = None,
) -> Row:
    place, end = committed.get(key), ends.get(key)
    return {
        "group": group.group_id,
        "topic": key.topic,
        "partition": key.partition,
        "leader_epoch": None if place is None or place.leader_epoch < 0 else place.leader_epoch,
        "current_offset": None if place is None else place.offset,
        "log_end_offset": end,
        "lag": None if place is None or end is None else end - place.offset,
        "consumer_id": None if member is None else member.member_id,
        "host": None if member is None else member.host,
        "client_id": None if member is None else member.client_id,
    }


def member_columns(groups: Iterable[GroupDescription], *, verbose: bool) -> list[Column]:
    """Columns that no member has anything for are left out."""
    members = [member for group in groups for member in group.members]
    columns = [*_MEMBERS, *(_MEMBERS_VERBOSE if verbose else ())]
    if not any(member.group_instance_id for member in members):
        columns.remove(_INSTANCE)
    # Of interest while a group moves from one protocol to the other.
    if verbose and not {True, False} <= {member.is_upgraded for member in members}:
        columns.remove(_UPGRADED)
    return columns


def member_rows(group: GroupDescription) -> list[Row]:
    return [
        {
            "group": group.group_id,
            "consumer_id": member.member_id,
            "group_instance_id": member.group_instance_id or "",
            "host": member.host,
            "client_id": member.client_id,
            "partition_count": len(member.assignment),
            "current_epoch": member.member_epoch,
            "current_assignment": _by_topic(member.assignment),
            "target_epoch": group.assignment_epoch,
            "target_assignment": _by_topic(member.target_assignment or ()),
            "upgraded": None if member.is_upgraded is None else str(member.is_upgraded).lower(),
        }
        for member in group.members
    ]


def state_columns(*, verbose: bool) -> list[Column]:
    return [*_STATES, *(_STATES_VERBOSE if verbose else ()), _MEMBER_COUNT]


def state_row(group: GroupDescription) -> Row:
    node = group.coordinator
    return {
        "group": group.group_id,
        "coordinator": f"{node.address}  ({node.broker_id})",
        "assignor": group.assignor or None,
        "state": group.state,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "member_count": len(group.members),
    }


def state_notes(group: GroupDescription) -> Iterator[str]:
    """What is to be known of a group's state before its rows are believed."""
    if group.state == "Empty":
        yield f"Consumer group {group.group_id!r} has no active members."
    elif group.state != "Stable":
        yield f"Consumer group {group.group_id!r} is rebalancing."


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        topics.setdefault(topic, []).append(number)
    return topics
