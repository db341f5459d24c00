"""A file that says which brokers shall hold partitions, as Kafka's kafka-reassign-partitions.sh
takes it.

    {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [2, 3]}]}
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import typer

from headwater.base.ids import TopicPartition

OPTION: Final = "--reassignment-json-file"


def read_moves(path: str) -> dict[TopicPartition, list[int]]:
    """The replicas by partition; anything odd about the file is a mistake of the command line."""
    try:
        content: Any = json.loads(Path(path).read_text())
    except ValueError as error:
        raise _fault(path, f"is no JSON: {error}") from None
    if not isinstance(content, dict) or content.get("version", 1) != 1:
        raise _fault(path, "should be an object of version 1")
    rows = content.get("partitions")
    if not isinstance(rows, list) or not rows:
        raise _fault(path, "names no partitions")
    moves: dict[TopicPartition, list[int]] = {}
    for row in rows:
        match row:
            case {"topic": str(topic), "partition": int(number), "replicas": [*replicas]} if all(
                type(each) is int for each in replicas
            ):
                name = TopicPartition(topic, number)
            case _:
                raise _fault(path, f"has a row without topic, partition and replicas: {row}")
        if name in moves:
            raise _fault(path, f"names {name} twice")
        moves[name] = replicas
    return moves


def moves_text(moves: Mapping[TopicPartition, Sequence[int]]) -> str:
    """A file that `read_moves`, and Kafka's tool, read as these moves: a line for each."""
    rows = [
        json.dumps({"topic": key.topic, "partition": key.partition, "replicas": list(replicas)})
        for key, replicas in sorted(moves.items())
    ]
    return '{"version": 1, "partitions": [\n  ' + ",\n  ".join(rows) + "\n]}\n"


def _fault(path: str, what: str) -> typer.BadParameter:
    return typer.BadParameter(f"{path} {what}", param_hint=OPTION)
