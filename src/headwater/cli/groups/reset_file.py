"""The file of `headwater groups reset-offsets --export` and `--from-file`: offsets as CSV.

A line is `topic,partition,offset`, or `group,topic,partition,offset` where there is more than one.
Kafka's tool writes and reads the same.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import typer

from headwater.base.ids import TopicPartition

#: Offsets by group and partition.
ResetOffsets: TypeAlias = dict[str, dict[TopicPartition, int]]

_FIELDS_WITHOUT_GROUP: Final = 3


def read_reset_file(path: str, group_ids: Sequence[str]) -> ResetOffsets:
    """The offsets in a file; anything odd about it is a mistake of the command line."""
    only_group = group_ids[0] if len(group_ids) == 1 else None
    offsets: ResetOffsets = {}
    with Path(path).open(encoding="utf-8", newline="") as file:
        for number, fields in enumerate(csv.reader(file), 1):
            if not fields:
                continue
            if len(fields) == _FIELDS_WITHOUT_GROUP and only_group is not None:
                fields = [only_group, *fields]
            group_id, key, offset = _parse(path, number, fields)
            offsets.setdefault(group_id, {})[key] = offset
    if not offsets:
        raise _fault(f"{path} names no partition")
    return offsets


def reset_file_text(offsets: Mapping[str, Mapping[TopicPartition, int]]) -> str:
    """What a file would hold; groups are named if there is more than one."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for group_id, partitions in offsets.items():
        group = [group_id] if len(offsets) > 1 else []
        writer.writerows(
            [*group, key.topic, key.partition, offset] for key, offset in partitions.items()
        )
    return text.getvalue()


def _parse(path: str, number: int, fields: list[str]) -> tuple[str, TopicPartition, int]:
    try:
        group_id, topic, partition, offset = fields
        return group_id, TopicPartition(topic, int(partition)), int(offset)
    except ValueError:
        raise _fault(
            f"line {number} of {path} should be topic,partition,offset for one group, or "
            "group,topic,partition,offset"
        ) from None


def _fault(what: str) -> typer.BadParameter:
    return typer.BadParameter(what, param_hint="--from-file")
