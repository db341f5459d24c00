"""The status of a cluster as people read it: tables, and a sentence that says what to do."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Final

from headwater.base.counted import counted
from headwater.base.printable import listed
from headwater.cli.cluster.broker_status import BrokerStatus
from headwater.cli.cluster.survey import ClusterStatus
from headwater.cli.output.colour import Tone, heading, painted
from headwater.cli.output.plain_table import WIDE, Column, Row, table_lines
from headwater.cli.output.sizes import size_text

_ROWS_MAX: Final = 50
_MOVES_SHOWN: Final = 10
_NAMED_MAX: Final = 5
_UP: Final = "up"


def _state_tone(value: object) -> Tone | None:
    return Tone.GOOD if value == _UP else Tone.BAD


def _trouble_tone(value: object) -> Tone | None:
    return Tone.BAD if value else None


_BROKERS: Final = (
    Column("BROKER", "broker", is_number=True),
    Column("ADDRESS", "address"),
    Column("RACK", "rack"),
    Column("VERSION", "version"),
    Column("STATE", "state", tone=_state_tone),
    Column("CONTROLLER", "controller"),
    Column("LEADERS", "leaders", is_number=True),
    Column("PREFERRED", "preferred", is_number=True),
    Column("REPLICAS", "replicas", is_number=True),
    Column("IN SYNC", "in_sync", is_number=True),
    Column("SIZE", "size", is_number=True),
    Column("FREE", "free", is_number=True),
    Column("WRITTEN", "written", is_number=True),
)
#: What few clusters tell, and none of them needs room on a narrow terminal for.
_OPTIONAL: Final = frozenset({"rack", "version"})
_PARTITIONS: Final = (
    Column("PARTITIONS", "partitions", is_number=True),
    Column("OFFLINE", "offline", is_number=True, tone=_trouble_tone),
    Column("UNDER-REPLICATED", "under_replicated", is_number=True, tone=_trouble_tone),
    Column("UNDER-MIN-ISR", "under_min_isr", is_number=True, tone=_trouble_tone),
    Column("MOVING", "moving", is_number=True),
    Column("NOT PREFERRED", "not_preferred", is_number=True),
)
_MOVES: Final = (
    Column("MOVING", "partition"),
    Column("REPLICAS", "replicas"),
    Column("ADDING", "adding"),
    Column("REMOVING", "removing"),
)
_GROUPS: Final = (
    Column("GROUP FURTHEST BEHIND", "group"),
    Column("STATE", "state"),
    Column("LAG", "lag", is_number=True),
    Column("PARTITIONS", "partitions", is_number=True),
)


def status_lines(status: ClusterStatus) -> Iterator[str]:
    """All of it, a line at a time; bounded, however large the cluster."""
    controller = f"controller {status.controller_id}" if status.has_controller else "no controller"
    yield heading(
        f"Cluster {status.cluster_id or '?'} at {time.strftime('%H:%M:%S')}: "
        f"{counted(len(status.live), 'broker')}, {controller}, "
        f"{counted(status.topic_count, 'topic')}"
    )
    yield ""
    shown = sorted(status.brokers, key=lambda each: (each.node is not None, each.broker_id))
    rows = [_broker_row(each) for each in sorted(shown[:_ROWS_MAX], key=_id)]
    columns = [
        column
        for column in _BROKERS
        if column.key not in _OPTIONAL or any(each[column.key] is not None for each in rows)
    ]
    yield from _table(columns, rows)
    if len(shown) > _ROWS_MAX:
        yield f"... and {counted(len(shown) - _ROWS_MAX, 'more broker')}."
    yield ""
    health = status.health
    row: Row = {
        "partitions": health.partition_count,
        "offline": len(health.offline),
        "under_replicated": len(health.under_replicated),
        "under_min_isr": None if status.under_min_isr is None else len(status.under_min_isr),
        "moving": None if status.moves is None else len(status.moves),
        "not_preferred": len(health.not_preferred),
    }
    yield from _table(_PARTITIONS, [row])
    yield ""
    if status.moves:
        yield from _move_lines(status)
    if status.groups is not None and status.groups.worst:
        yield from _group_lines(status)
    yield painted(conclusion(status), None if status.is_healthy else Tone.BAD)


def conclusion(status: ClusterStatus) -> str:
    """One sentence: what is the matter, and which command helps."""
    health = status.health
    if not status.is_healthy:
        parts = []
        if not status.has_controller:
            parts.append("there is no controller")
        if status.missing:
            noun = "broker" if len(status.missing) == 1 else "brokers"
            verb = "is" if len(status.missing) == 1 else "are"
            parts.append(f"{noun} {listed(status.missing, _NAMED_MAX)} {verb} missing")
        if health.offline:
            parts.append(f"without a leader: {listed(health.offline, _NAMED_MAX)}")
        if status.under_min_isr:
            refusing = listed(status.under_min_isr, _NAMED_MAX)
            parts.append(f"too few in sync for acks=all: {refusing}")
        if health.under_replicated:
            parts.append(f"under-replicated: {listed(health.under_replicated, _NAMED_MAX)}")
        parts += [
            f"broker {each.broker_id} has lost {listed(each.failed_directories, _NAMED_MAX)}"
            for each in status.brokers
            if each.failed_directories
        ]
        text = "; ".join(parts)
        return f"{text[0].upper()}{text[1:]}. `headwater doctor` says why, and what helps."
    if status.moves:
        return (
            f"All is in sync that stays; {counted(len(status.moves), 'partition')} on the move: "
            "`headwater reassign status`."
        )
    if health.not_preferred:
        count = len(health.not_preferred)
        return (
            f"All is in sync; {counted(count, 'partition')} {'is' if count == 1 else 'are'} led by "
            "others than meant: `headwater elect-leaders --all-topic-partitions` gives "
            f"{'it' if count == 1 else 'them'} back."
        )
    return "All is well: every partition has a leader and all replicas in sync."


def _id(broker: BrokerStatus) -> int:
    return broker.broker_id


def _broker_row(broker: BrokerStatus) -> Row:
    held, node = broker.held, broker.node
    state = _UP
    if node is None:
        state = "missing"
    elif broker.directories is None:
        state = "silent"
    elif broker.failed_directories:
        state = "disk failed"
    elif broker.is_cordoned:
        state = "cordoned"
    return {
        "broker": broker.broker_id,
        "address": None if node is None else str(node.address),
        "rack": None if node is None else node.rack,
        "version": broker.version,
        "state": state,
        "controller": "yes" if broker.is_controller else None,
        "leaders": len(held.leaders),
        "preferred": len(held.preferred),
        "replicas": len(held.replicas),
        "in_sync": len(held.replicas) - len(held.out_of_sync),
        "size": _size(broker.used_bytes),
        "free": _size(broker.free_bytes),
        "written": None if broker.bytes_in is None else f"{size_text(broker.bytes_in)}/s",
    }


def _move_lines(status: ClusterStatus) -> Iterator[str]:
    moves = sorted((status.moves or {}).items())
    rows: list[Row] = [
        {
            "partition": str(key),
            "replicas": _brokers(move.replicas),
            "adding": _brokers(move.adding_replicas),
            "removing": _brokers(move.removing_replicas),
        }
        for key, move in moves[:_MOVES_SHOWN]
    ]
    yield from _table(_MOVES, rows)
    if len(moves) > _MOVES_SHOWN:
        yield f"... and {len(moves) - _MOVES_SHOWN:,} more."
    yield ""


def _group_lines(status: ClusterStatus) -> Iterator[str]:
    lags = status.groups
    if lags is None:
        return
    rows: list[Row] = [
        {
            "group": each.group_id,
            "state": each.state or None,
            "lag": f"{each.lag:,}",
            "partitions": each.partition_count,
        }
        for each in lags.worst
    ]
    yield from _table(_GROUPS, rows)
    if lags.asked_count < lags.group_count:
        yield f"Only the first {lags.asked_count:,} of {lags.group_count:,} groups were asked."
    yield ""


def _table(columns: Sequence[Column], rows: Sequence[Row]) -> Iterator[str]:
    return table_lines(columns, rows, WIDE)


def _brokers(broker_ids: Sequence[int]) -> str | None:
    return ",".join(map(str, broker_ids)) or None


def _size(size_bytes: int | None) -> str | None:
    return None if size_bytes is None else size_text(size_bytes)
